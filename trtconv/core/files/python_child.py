"""A Python that is started by ours imports nothing that lies in the current folder.

`python -m` and `python -c` look there first, so that a `tensorrt.py` or `random.py` beside a stranger's model would
run. Python 3.11 has the option -P against it, 3.10 nothing.
"""

from __future__ import annotations

import os
import sys

# `sys` is built in, and looked up nowhere.
SAFE_PATH = "import sys; sys.path[:1] = filter(None, sys.path[:1])"
_RUN = f"{SAFE_PATH}; import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def run_module(name: str) -> tuple[str, ...]:
    """The command line that runs a module as `python -m` does; its arguments follow."""
    return sys.executable, "-c", _RUN, name


def import_path() -> str:
    """`PYTHONPATH` of a child that imports from where this process does."""
    return os.pathsep.join(p for p in sys.path if p)


def run_code(code: str) -> tuple[str, ...]:
    """The command line that runs a text as `python -c` does."""
    return sys.executable, "-c", f"{SAFE_PATH}; {code}"
