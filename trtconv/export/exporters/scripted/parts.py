"""The parts of a module that loop over what may move with a size, as scripts."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.exporters.scripted.cells import plain_cell
from trtconv.export.exporters.scripted.forms.readable import readable_forms
from trtconv.export.exporters.scripted.likeness import require_same_operators
from trtconv.export.exporters.scripted.refused_scripts import why_no_script
from trtconv.export.module.scripted_module import callable_module
from trtconv.export.module.user_code import Frame

if TYPE_CHECKING:
    from torch import nn

Change = Callable[["nn.Module"], "nn.Module"]

# `for layer in self.layers`, `for i in range(self.steps)`: as often at every size.
FIXED = frozenset(("self", "range", "enumerate", "zip", "len", "reversed", "list", "tuple"))


class NoLoopError(UnsupportedError):
    """There is nothing to script in the module, which says nothing about why it cannot be exported."""


def with_scripts(flat: Any, inputs: Sequence[Any]) -> Any:
    """A copy of the flat module in which each part that loops is a script of it, with the same weights.

    Raises NoLoopError where no part does, and UnsupportedError where torch.jit.script takes one of them not, its source
    cannot be read, or a script does not say what Python runs: it is not asked about decorators, `__call__`, hooks or
    what stands under `torch.jit.is_scripting`.
    """
    plain = replaced(flat.module, _with_plain_cells)
    try:
        scripted = _as_plain(flat, plain, partial(_scripted, states_given=False), inputs)
    except RuntimeError:
        # Some call gives what is None by default.
        scripted = _as_plain(flat, plain, partial(_scripted, states_given=True), inputs)
    other = copy.copy(flat)
    other._modules = {**flat._modules, "module": scripted}
    return other


def in_scripts(module: nn.Module, line: Frame) -> bool:
    """True for a line of a class whose parts are scripts in `with_scripts`."""
    classes = {type(inner) for part in module.modules() if loops(part) for inner in part.modules()}
    bases = {base for c in classes for base in c.__mro__}
    for kind in (b for b in bases if b.__module__.split(".")[0] not in ("torch", "builtins")):
        try:
            lines, first = inspect.getsourcelines(kind)
        except (OSError, TypeError):
            continue
        if inspect.getsourcefile(kind) == line[0] and first <= line[1] < first + len(lines):
            return True
    return False


def _as_plain(flat: Any, plain: nn.Module, change: Change, inputs: Sequence[Any]) -> nn.Module:
    """The module with its scripts, which runs the operators that it runs without."""
    scripted = callable_module(replaced(plain, change))
    if scripted is plain:
        hidden = next((type(part) for part in plain.modules() if _is_hidden(type(part))), None)
        if hidden is not None:
            raise UnsupportedError(f"the source of {hidden.__name__} cannot be read, and no loop in it be scripted")
        raise NoLoopError("no part of the module has a loop over what may be a size")
    positional, keywords = flat.arguments(inputs)
    require_same_operators(plain, scripted, positional, keywords)
    return scripted


def _is_hidden(kind: Any) -> bool:
    """True for a class whose forward is written in Python that nobody can read, as in `exec`."""
    forward = getattr(kind, "forward", None)
    if kind.__module__.split(".")[0] == "torch" or not inspect.isfunction(forward):
        return False
    return not list(ast.iter_child_nodes(_parsed(forward)))


def loops(part: nn.Module) -> bool:
    """True for a part in whose methods a loop runs over more than its own attributes."""
    kind: Any = type(part)
    return any(_class_loops(base) for base in kind.__mro__[:-1])


@cache
def _class_loops(kind: Any) -> bool:
    # What packages loop over (the layers of an nn.Sequential) is theirs, and exporters know it.
    if kind.__module__.split(".")[0] == "torch":
        return False
    # A method may come from another function, or by assignment.
    sources = (kind, *_own_functions(kind))
    return any(not _names(loop) <= FIXED for source in sources for loop in _loops(_parsed(source)))


def _own_functions(kind: Any) -> Iterator[Any]:
    return (value for value in vars(kind).values() if inspect.isfunction(value))


def _parsed(source: Any) -> ast.AST:
    """The syntax of a class or function; empty where its source cannot be read."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(source)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def _loops(tree: ast.AST) -> Iterator[ast.expr]:
    """What each loop runs over, or goes on for; those of a nested class are its own."""
    for node in _without_nested_classes(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield node.iter
        elif isinstance(node, ast.While):
            yield node.test


def _without_nested_classes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        nested = isinstance(node, ast.ClassDef) and not isinstance(tree, ast.Module)
        if not nested:
            yield node
            yield from _without_nested_classes(node)


def _names(expression: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}


def _with_plain_cells(part: nn.Module) -> nn.Module:
    return replaced(part, plain_cell) if loops(part) else part


def _scripted(part: nn.Module, *, states_given: bool) -> nn.Module:
    import torch

    if not loops(part):
        return part
    script: nn.Module | None = None
    errors: list[Exception] = []
    for called_alone in (None,) if states_given else (type(part).forward, None):
        try:
            with readable_forms(called_alone):
                script = torch.jit.script(with_class_constants(part))
            break
        except Exception as error:  # noqa: BLE001 - the compiler of scripts raises types of many kinds
            errors.append(error)
    if script is None:
        raise UnsupportedError(f"{type(part).__name__} is no script: {why_no_script(errors[0])}") from errors[0]
    # With what it calls, so that a number or a row is followed from where it is computed to where it is read.
    torch._C._jit_pass_inline(script.graph)
    _select_rows(script.graph)
    return script


def with_class_constants(part: nn.Module) -> nn.Module:
    """The part with the numbers and texts of its class as its own, which are all that a script looks at; so its parts.

    A copy that shares all else; itself where its classes have none.
    """
    import torch

    if isinstance(part, torch.jit.ScriptModule):
        return part
    bases = [kind for kind in type(part).__mro__ if kind.__module__.split(".")[0] not in ("torch", "builtins")]
    constants = {n: v for kind in reversed(bases) for n, v in vars(kind).items() if _is_constant(v) and n[:2] != "__"}
    constants = {n: v for n, v in constants.items() if n not in part.__dict__ and getattr(part, n) is v}
    children = {n: child if child is None else with_class_constants(child) for n, child in part._modules.items()}
    if not constants and all(child is part._modules[n] for n, child in children.items()):
        return part
    other = copy.copy(part)
    other._modules = children
    other.__dict__.update(constants)
    return other


def _is_constant(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(map(_is_constant, value))
    return isinstance(value, (bool, int, float, str))


def _select_rows(graph: Any) -> None:
    """`for row in x.unbind(1)` as a loop over numbers: a list of rows is a sequence in the file."""
    for node in graph.findAllNodes("aten::unbind"):
        tensor, axis = node.inputs()
        uses = [use.user for use in node.output().uses()]
        if any(use.kind() not in ("aten::__getitem__", "aten::len") for use in uses):
            continue
        for use in uses:
            inputs = [tensor, axis] if use.kind() == "aten::len" else [tensor, axis, list(use.inputs())[1]]
            row = graph.create("aten::size" if use.kind() == "aten::len" else "aten::select", inputs, 1)
            row.insertBefore(use)
            row.output().setType(use.output().type())
            use.output().replaceAllUsesWith(row.output())
            use.destroy()
        node.destroy()


def replaced(module: nn.Module, change: Change) -> nn.Module:
    """The module with parts changed, as copies that share all else; itself where nothing changes.

    What `change` has replaced is not looked into.
    """
    results: dict[int, nn.Module] = {}

    def visit(part: nn.Module) -> nn.Module:
        if id(part) not in results:
            results[id(part)] = changed(part)
        return results[id(part)]

    def changed(part: nn.Module) -> nn.Module:
        new = change(part)
        if new is not part:
            return new
        children = {name: child if child is None else visit(child) for name, child in part._modules.items()}
        if all(child is part._modules[name] for name, child in children.items()):
            return part
        other = copy.copy(part)
        other._modules = children
        return other

    return visit(module)
