"""Loops whose number of steps is a size: torch.export unrolls them for one size, and so does a recording."""

from __future__ import annotations

import ast

from trtconv.export.module.user_code import innermost_user_frame, parse_file, python_frames

# How torch.export says that it took a number for a size.
SPECIALIZED = "specialized it to be a constant"


def unrolls_by_size(error: BaseException | None) -> bool:
    """True where a trace made a number of a size in the line in which a loop of the user's begins.

    `for t in range(x.shape[1])` and `while t < x.shape[1]` have no other form in a file than a Loop.
    """
    text = str(error or "")
    frame = innermost_user_frame(python_frames(text)) if SPECIALIZED in text else None
    tree = parse_file(frame[0]) if frame is not None else None
    if tree is None or frame is None:
        return False
    loops = (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While)))
    return any(_head_has(loop, frame[1]) for loop in loops)


def _head_has(loop: ast.For | ast.While, line: int) -> bool:
    head = loop.iter if isinstance(loop, ast.For) else loop.test
    return loop.lineno <= line <= (head.end_lineno or head.lineno)
