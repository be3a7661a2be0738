"""The Python examples of a page of docs/, to be run in order."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


def write_examples(page: str, folder: Path) -> list[str]:
    """Write the blocks that begin with a file's name into `folder`; return the others."""
    scripts = []
    for block in _BLOCK.findall((ROOT / "docs" / page).read_text()):
        name = _FILE.match(block)
        if name:
            (folder / name[1]).write_text(block)
        else:
            scripts.append(block)
    return scripts
