"""The command line in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_trtconv(folder, *words, **variables):
    """The ended process of a command in `folder`, without a cache and with nothing of this environment but PATH."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "TRTCONV_CACHE": "off", "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "trtconv", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment | variables,
    )
