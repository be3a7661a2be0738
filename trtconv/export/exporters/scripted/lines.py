"""Where in the user's source a node of a script comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

POSITION = re.compile(r'File "([^"]+)", line (\d+)')
# What underlines the expression.
MARK = "~"


def source_line(node: Any, base: Path | None = None) -> str:
    """`net.py:12 (h = x[:, t] * h)`, as far as the script knows it; paths are shown relative to `base`."""
    lines = str(node.sourceRange()).splitlines()
    mark = next((i for i, line in enumerate(lines) if line.strip().startswith(MARK)), None)
    code = lines[mark - 1].strip() if mark else ""
    # The first is the line itself; what follows are its callers.
    position = next((m for line in lines if (m := POSITION.search(line)) is not None), None)
    if position is None:
        return code[:120]
    path = Path(position[1])
    shown = path.relative_to(base) if base is not None and path.is_relative_to(base) else path
    return f"{shown}:{position[2]}" + (f" ({code[:120]})" if code else "")
