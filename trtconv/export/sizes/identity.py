"""Sizes that are asked for by identity: `(t == 9) is True`, `t is 200`.

torch's SymBool is neither True nor False, so that a run with symbols takes one side of such a question at every size
and records no condition: comparisons are truth values at once in files that ask so. Which whole numbers are one object
is CPython's affair (those from -5 to 256 are): questions for those are told by their lines.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard
from unittest import mock

from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import parse_file, quote_frame
from trtconv.export.sizes import number_classes

ASKED = re.compile(r"\bis\s+(?:not\s+)?(?:True|False)\b|\b(?:True|False)\s+is\b")
TEXTS_AND_COMMENTS = re.compile(
    r'"""[\s\S]*?"""|' r"'''[\s\S]*?'''|" r'#[^\n]*|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'"
)
# What asks whether two objects are one, of which no constant is the second: a file without it need not be parsed.
ASKED_OF_TWO = re.compile(
    r"\bis_(?:not)?\b|\bid\b|\bis\b[\s\\]*(?:not[\s\\]+)?(?![\s\\]|(?:None|True|False|not)\b)"
)
# Lines that one note names.
MOST_NAMED = 3
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


@contextmanager
def truths_by_identity(files: Collection[str]) -> Iterator[None]:
    """Comparisons of sizes in these files are decided, with a condition, where one of them asks `is True`."""
    import torch

    if not any(map(_asks, files)):
        yield
        return

    def decided(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def decide(own: Any, other: Any) -> Any:
            answer = compare(own, other)
            if not isinstance(answer, torch.SymBool):
                return answer
            caller = sys._getframe(1)
            if caller.f_code.co_filename == number_classes.__file__ and caller.f_back is not None:
                caller = caller.f_back
            return bool(answer) if caller.f_code.co_filename in files else answer

        return decide

    with ExitStack() as stack:
        for kind in (torch.SymInt, torch.SymFloat):
            for name in COMPARISONS:
                stack.enter_context(mock.patch.object(kind, name, decided(getattr(kind, name))))
        yield


def _asks(file: str) -> bool:
    try:
        # A file that is edited in a session may ask from then on.
        return _asks_since(file, os.stat(file).st_mtime_ns)
    except OSError:
        return False


@cache
def _asks_since(file: str, modified: int) -> bool:
    return ASKED.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None


@dataclass(frozen=True)
class _Numbers:
    """Names that stand for numbers, and the enumerations, whose members are one object each."""

    names: frozenset[str]
    enumerations: frozenset[str]

    def has(self, written: ast.expr) -> bool:
        """True for such a name, and for an attribute of that name."""
        member = isinstance(written, ast.Attribute) and _last_name(written.value) in self.enumerations
        return not member and _last_name(written) in self.names


def numbers_by_identity(
    files: Iterable[str], base: Path, entered: Callable[[], Collection[tuple[str, int]]] | None = None
) -> tuple[str, ...]:
    """A note on the lines of a module's files that ask whether numbers are one object.

    `entered` gives the functions that the module runs, by their file and first line: a file may hold others.
    """
    listed = sorted(files)
    operands = {file: names for file in listed if (names := _operands_of_identity(file)) is not None}
    functions = entered() if operands and entered is not None else None
    if functions is not None:
        run = {file for file, _ in functions}
        operands = {file: names for file, names in operands.items() if file in run}
    names = frozenset().union(*operands.values())
    constants = [c for file in listed if names and _may_name_numbers(file, names) for c in _constants_of(file)]
    numbers = _Numbers(
        frozenset(name for name, is_number in constants if is_number),
        frozenset(name for name, is_number in constants if not is_number),
    )
    asking = [(file, line, function) for file in operands for line, function in _lines_of_identity(file, numbers)]
    if functions is not None:
        asking = [(file, line, function) for file, line, function in asking if (file, function) in functions]
    frames = [(file, line) for file, line, _ in asking]
    if not frames:
        return ()
    lines = list_first([quote_frame(frame, base) for frame in frames], MOST_NAMED)
    return (
        f"the module asks whether numbers are one object: {lines}; in CPython those from -5 to 256 are, and the file "
        "need not answer so: compare with ==",
    )


def _operands_of_identity(file: str) -> frozenset[str] | None:
    """The names in what a file compares by identity; None where it compares nothing so but constants.

    An application of hundreds of files is looked through in seconds: few of them have such a line.
    """
    try:
        return _operands_since(file, os.stat(file).st_mtime_ns)
    except OSError:
        return None


@cache
def _operands_since(file: str, modified: int) -> frozenset[str] | None:
    tree = parse_file(file) if ASKED_OF_TWO.search(TEXTS_AND_COMMENTS.sub("''", _text_of(file))) else None
    asking = (n for n in ([] if tree is None else ast.walk(tree)) if isinstance(n, (ast.Compare, ast.Call)))
    pairs = [pair for node in asking for pair in _identities(node) if not _of_a_constant(*pair)]
    if not pairs:
        return None
    compared = [operand for pair in pairs for operand in pair]
    # Of `Mode.FAST` that of the enumeration, too.
    compared += [o.value for o in compared if isinstance(o, ast.Attribute)]
    return frozenset(map(_last_name, compared)) - {""}


def _may_name_numbers(file: str, names: Collection[str]) -> bool:
    """True for a file in which one of the names is given a number, or is that of a class."""
    named = "|".join(names)
    return re.search(rf"\b(?:{named})\b[^\n]*=[\s(\\]*[\d.]|\bclass\s+(?:{named})\b", _text_of(file)) is not None


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines_of_identity(file: str, numbers: _Numbers) -> list[tuple[int, int]]:
    tree = parse_file(file)
    return [] if tree is None else sorted(set(_lines_within(tree, numbers, 0)))


def _lines_within(scope: ast.AST, numbers: _Numbers, first: int) -> Iterator[tuple[int, int]]:
    """The lines of a file or a function that ask so, with its `first`; `numbers` are those around it."""
    inner, nodes = _nodes_of(scope)
    if not isinstance(scope, ast.ClassDef):
        # The names of a class's body are its attributes.
        own = {name for node in nodes for name in _names_of_numbers(node)}
        numbers = replace(numbers, names=numbers.names | own)
    for node in nodes:
        if isinstance(node, (ast.Compare, ast.Call)) and any(_between_numbers(numbers, *p) for p in _identities(node)):
            yield node.lineno, first
    for part in inner:
        yield from _lines_within(part, numbers, _first_line(part, first))


def _first_line(scope: ast.AST, around: int) -> int:
    """The line that a function's code begins at, its decorators included; of a class what is around it."""
    if not isinstance(scope, FUNCTIONS):
        return around
    decorators: list[ast.expr] = getattr(scope, "decorator_list", [])
    return min([scope.lineno, *(d.lineno for d in decorators)])


def _nodes_of(scope: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """The functions and classes of a scope, and its nodes outside of them."""
    inner: list[ast.AST] = []
    nodes: list[ast.AST] = []
    waiting = [*ast.iter_child_nodes(scope)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            inner.append(node)
            continue
        nodes.append(node)
        waiting += ast.iter_child_nodes(node)
    return inner, nodes


def _identities(asking: ast.Compare | ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is asked for being one object: by `is`, by `operator.is_`, by `id` of both."""
    if isinstance(asking, ast.Call):
        if _last_name(asking.func) in ("is_", "is_not") and len(asking.args) == 2:
            yield asking.args[0], asking.args[1]
        return
    operands = [asking.left, *asking.comparators]
    for operator, left, right in zip(asking.ops, operands, operands[1:], strict=False):
        if isinstance(operator, (ast.Is, ast.IsNot)):
            yield left, right
        elif _is_address(left) and _is_address(right):
            yield left.args[0], right.args[0]


def _is_address(written: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(written, ast.Call) and _last_name(written.func) == "id" and len(written.args) == 1


def _between_numbers(numbers: _Numbers, left: ast.expr, right: ast.expr) -> bool:
    """True where one of the two is a number, as written or by its name, and none a constant of which there is one."""
    return not _of_a_constant(left, right) and any(_is_number(v) or numbers.has(v) for v in (left, right))


def _of_a_constant(*operands: ast.expr) -> bool:
    """True where one of them is a constant of which there is one: None, a truth value, a text."""
    return any(isinstance(v, ast.Constant) and type(v.value) not in (int, float) for v in operands)


def _is_number(written: ast.expr) -> bool:
    signed = isinstance(written, ast.UnaryOp) and not isinstance(written.op, ast.Not)
    return signed or isinstance(written, ast.BinOp) or _is_written_number(written)


def _is_written_number(written: ast.expr) -> bool:
    return isinstance(written, ast.Constant) and type(written.value) in (int, float)


def _names_of_numbers(node: ast.AST) -> Iterator[str]:
    """The names that a node gives to a number as written: those of a file, a function's own, its parameters."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _numbers_named(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _numbers_named(node.target, node.value)
    elif isinstance(node, ast.arguments):
        by_position = [*node.posonlyargs, *node.args][::-1]
        pairs = [
            *zip(by_position, node.defaults[::-1], strict=False),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        yield from (a.arg for a, default in pairs if default is not None and _is_written_number(default))


def _constants_of(file: str) -> Iterator[tuple[str, bool]]:
    """The names of a file, and of attributes, that stand for numbers (True), and those of its enumerations (False)."""
    tree = parse_file(file)
    waiting = [] if tree is None else [*ast.iter_child_nodes(tree)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef) and any(_last_name(b).endswith(("Enum", "Flag")) for b in node.bases):
            yield node.name, False
            continue
        in_function = isinstance(node, FUNCTIONS)
        if in_function:
            # A function's own names are looked up there.
            yield from ((name, True) for n in ast.walk(node) for name in _attributes_of_numbers(n))
        else:
            waiting += ast.iter_child_nodes(node)
            yield from ((name, True) for name in _names_of_numbers(node))


def _attributes_of_numbers(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = getattr(node, "value", None)
    if value is not None:
        yield from (n for t in targets if isinstance(t, ast.Attribute) for n in _numbers_named(t, value))


def _numbers_named(target: ast.expr, value: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _numbers_named(one, part)
    elif _is_written_number(value) and _last_name(target):
        yield _last_name(target)


def _last_name(written: ast.expr) -> str:
    """`N` of `N`, `cfg.N` and `self.N`; empty for what is no name."""
    if isinstance(written, ast.Name):
        return written.id
    return written.attr if isinstance(written, ast.Attribute) else ""
