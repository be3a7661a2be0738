"""Forms of Python that torch.jit.script does not take, in those that it takes: its parser gets the syntax tree so."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

from trtconv.export.exporters.scripted.forms.decimals import make_decimal, write_decimals
from trtconv.export.exporters.scripted.forms.deques import write_deques
from trtconv.export.exporters.scripted.forms.elements.inlining import inline_local_functions, inline_methods
from trtconv.export.exporters.scripted.forms.elements.lambdas import write_lambdas_out
from trtconv.export.exporters.scripted.forms.elements.separation import separate_elements
from trtconv.export.exporters.scripted.forms.fresh_sums import write_sums_out
from trtconv.export.exporters.scripted.forms.joined_ranges import write_joined_ranges
from trtconv.export.exporters.scripted.forms.leaving import without_else
from trtconv.export.exporters.scripted.forms.neighbours import count_neighbours
from trtconv.export.exporters.scripted.forms.peeling import peel_loops
from trtconv.export.exporters.scripted.forms.resizes import write_resizes
from trtconv.export.exporters.scripted.forms.reversed_lists import flip_reversed_lists
from trtconv.export.exporters.scripted.forms.variables import is_number
from trtconv.export.exporters.scripted.forms.variables_behind import keep_loop_variables
from trtconv.export.exporters.scripted.forms.written_lists import write_lists

_NUMBERS = (bool, int, float)
# c10/core/ScalarType.h
_TYPES = {"bool": 11, "bfloat16": 15}


@contextmanager
def readable_forms(called_alone: Any = None) -> Iterator[None]:
    """Functions that are scripted during the block are read in forms of the same meaning.

    Lists grow by `append` alone, sums of generators are loops, lists of states are separate variables, loops before
    which a state is None or the number that a sum starts from are written with the first step apart,
    `reversed(range(n))` counts down, `[*range(n), m]` counts up, `y[:, t] += x` is an assignment, `x[:, t : t + 1]` a
    row, a tensor is flipped for a list that is reversed, and local functions stand where they are called.
    A parameter that is None by default is a tensor or None; of the function that is `called_alone`, None: TensorRT
    knows no optional tensor.
    """
    from torch.jit import _recursive, _state, frontend

    parse = frontend.parse_def

    def parse_readable(function: Any) -> Any:
        parsed = parse(function)
        # What torch itself wrote is meant for scripts.
        if (getattr(function, "__module__", None) or "").split(".")[0] == "torch":
            return parsed
        never_given = getattr(function, "__func__", function) is called_alone
        owner, namespace = getattr(function, "__self__", None), getattr(function, "__globals__", {})
        tree = ast.Module([_readable(node, owner, namespace, never_given) for node in parsed.ast.body], [])
        return parsed._replace(ast=tree)

    # What is scripted so is no one else's: a class that could not be compiled cannot be tried again, either.
    with (
        mock.patch.object(frontend, "parse_def", parse_readable),
        mock.patch.object(_recursive, "concrete_type_store", _own_types()),
        mock.patch.object(_state, "_jit_caching_layer", WeakKeyDictionary()),
    ):
        yield


def _readable(
    function: ast.FunctionDef, owner: Any, namespace: Mapping[str, Any], never_given: bool
) -> ast.FunctionDef:
    function = _in_scripts_words(inline_local_functions(write_lambdas_out(function)), namespace)
    absent = {a.arg for a in _optional_states(function)} if never_given else set()
    without_parts = inline_methods(function, owner, lists=False)
    if without_parts is not function:
        function = _in_scripts_words(without_parts, namespace)
    inlined = inline_methods(function, owner, lists=True)
    if inlined is not function:
        inlined = _in_scripts_words(inlined, namespace)
    separated = separate_elements(inlined, owner, namespace, absent)
    if separated is inlined:
        separated = separate_elements(function, owner, namespace, absent)
    written: ast.FunctionDef = write_sums_out(_WrittenOut().visit(separated))
    states = _optional_states(written)
    for argument in states:
        if never_given or argument.annotation is None:
            annotation = ast.parse("None" if never_given else "Optional[Tensor]", mode="eval").body
            argument.annotation = ast.fix_missing_locations(ast.copy_location(annotation, argument))
    for argument, number in _with_default(written):
        # A script takes it for a tensor, which no number is.
        if argument.annotation is None and isinstance(number, ast.Constant) and type(number.value) in _NUMBERS:
            argument.annotation = ast.copy_location(ast.Name(type(number.value).__name__, ast.Load()), argument)
    return peel_loops(flip_reversed_lists(written), {a.arg for a in states if never_given})


def _in_scripts_words(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> ast.FunctionDef:
    """The function without lists, loop variables and resizes of which a script knows another form; changed in place."""
    lists = count_neighbours(write_lists(write_deques(function, namespace), namespace), namespace)
    return write_resizes(keep_loop_variables(lists), namespace)


def _own_types() -> Any:
    """A store of types for scripts in which no two modules share one: their lists may have other lengths."""
    from torch.jit import _recursive

    class OwnTypes(_recursive.ConcreteTypeStore):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._by_module: dict[int, tuple[Any, Any]] = {}

        def get_or_create_concrete_type(self, nn_module: Any) -> Any:
            if id(nn_module) not in self._by_module:
                self.type_store.pop(type(nn_module), None)
                self._by_module[id(nn_module)] = nn_module, super().get_or_create_concrete_type(nn_module)
            return self._by_module[id(nn_module)][1]

    return OwnTypes()


def _optional_states(function: ast.FunctionDef) -> list[ast.arg]:
    """Parameters whose default is None; a script takes those without a type for tensors."""
    return [a for a, d in _with_default(function) if isinstance(d, ast.Constant) and d.value is None]


def _with_default(function: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    # A default belongs to the last of them.
    pairs = list(zip(positional[::-1], arguments.defaults[::-1], strict=False))
    return pairs + [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]


class _WrittenOut(ast.NodeTransformer):
    """`reversed(range(a, b))` as `range(b - 1, a - 1, -1)`, `y[:, t] += x` as `y[:, t] = y[:, t] + x`, as the exporter
    knows whole values of what is written in place, and `x[:, t : t + 1]` as `x[:, t, None]`, as TensorRT-RTX builds no
    loop with a slice that moves.
    """

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        indices = [new for index in node.elts for new in _without_slice_of_one(index)]
        return ast.copy_location(ast.Tuple(indices, node.ctx), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Subscript):
            return node
        element = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
        result = ast.copy_location(ast.BinOp(element, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], result), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not t % 4` of whole numbers: a script has `not` of booleans alone."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not) or not isinstance(node.operand, ast.BinOp):
            return node
        zero = ast.copy_location(ast.Constant(0), node)
        return ast.copy_location(ast.Compare(node.operand, [ast.Eq()], [zero]), node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return without_else(node, f"ended_{node.lineno}") if node.orelse else node

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """`for row in reversed(rows)` and joined ranges by numbers that count; the `else` of a loop behind it."""
        self.generic_visit(node)
        parts = without_else(node, f"ended_{node.lineno}") if node.orelse else [node]
        return [new for s in parts for new in (self._counting(s) if isinstance(s, ast.For) else [s])]

    def _counting(self, loop: ast.For) -> list[ast.stmt]:
        counted = self._counting_down(loop)
        return write_joined_ranges(counted) if isinstance(counted, ast.For) else [counted]

    def _counting_down(self, node: ast.For) -> ast.stmt:
        match node.iter:
            case ast.Call(func=ast.Name(id="reversed"), args=[ast.Name() as rows], keywords=[]):
                step, down = f"{rows.id}_from_the_end", ast.UnaryOp(ast.USub(), ast.Constant(1))
                last = ast.BinOp(ast.Call(ast.Name("len", ast.Load()), [rows], []), ast.Sub(), ast.Constant(1))
                count = ast.Call(ast.Name("range", ast.Load()), [last, down, down], [])
                row = ast.Assign([node.target], ast.Subscript(rows, ast.Name(step, ast.Load()), ast.Load()))
                new = ast.For(ast.Name(step, ast.Store()), count, [row, *node.body], node.orelse)
                return ast.fix_missing_locations(ast.copy_location(new, node))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`x.unbind(1)[1:]` as `x[:, 1:].unbind(1)`: ONNX has no slice of a sequence."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=rows, attr="unbind"), args=[*axes], keywords=[]),
                slice=ast.Slice(step=None) as part,
            ) if getattr(rows, "id", "") != "torch" and [type(a) for a in axes] in ([], [ast.Constant]):
                axis = axes[0].value if axes and isinstance(axes[0], ast.Constant) else 0
                if isinstance(axis, int) and axis >= 0:
                    whole = [ast.Slice() for _ in range(axis)]
                    index = ast.Tuple([*whole, part], ast.Load()) if whole else part
                    unbind = ast.Attribute(ast.Subscript(rows, index, ast.Load()), "unbind", ast.Load())
                    return ast.fix_missing_locations(ast.copy_location(ast.Call(unbind, axes, []), node))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        write_decimals(node)
        match node:
            case ast.Call(func=ast.Attribute(attr=("tensor" | "new_tensor" | "as_tensor")), args=[ast.List() as rows]):
                # A list of a script has one type.
                literals = list(_literals(rows))
                if any(isinstance(n.value, float) for n in literals):
                    for number in literals:
                        number.value = float(number.value) if type(number.value) is int else number.value
            case ast.Call(
                func=ast.Name(id="reversed"),
                args=[ast.Call(func=ast.Name(id="range"), args=[*bounds], keywords=[])],
                keywords=[],
            ) if 1 <= len(bounds) <= 2:
                low, high = bounds if len(bounds) == 2 else (ast.Constant(0), bounds[0])
                ends = [ast.BinOp(bound, ast.Sub(), ast.Constant(1)) for bound in (high, low)]
                down = ast.UnaryOp(ast.USub(), ast.Constant(1))
                new = ast.Call(ast.Name("range", ast.Load()), [*ends, down], [])
                return ast.fix_missing_locations(ast.copy_location(new, node))
            case ast.Call(func=ast.Attribute(attr="where") as function, args=[_, first, second], keywords=[]):
                # A script takes True and False for numbers, and casts them.
                for index, (flag, other) in enumerate(((first, second), (second, first)), 1):
                    if isinstance(flag, ast.Constant) and isinstance(flag.value, bool) and _is_repeatable(other):
                        like = ast.Attribute(function.value, "ones_like" if flag.value else "zeros_like", ast.Load())
                        call = ast.Call(like, [copy.deepcopy(other)], [])
                        node.args[index] = ast.fix_missing_locations(ast.copy_location(call, flag))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch") as package, attr="full"),
                args=[size, ast.Constant(value=bool(flag))],
            ):
                # Scripts have no number of True.
                node.func = ast.Attribute(package, "ones" if flag else "zeros", ast.Load())
                node.args = [size]
                if not any(k.arg == "dtype" for k in node.keywords):
                    flags = ast.Attribute(ast.Name("torch", ast.Load()), "bool", ast.Load())
                    node.keywords.append(ast.keyword("dtype", flags))
                return ast.fix_missing_locations(node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="full"), args=[_, number]) if not any(
                k.arg == "dtype" for k in node.keywords
            ):
                # A script makes floats of a whole number.
                if is_number(number, set()) and not _is_decimal(number):
                    kind = ast.Attribute(ast.Name("torch", ast.Load()), "int64", ast.Load())
                    node.keywords.append(ast.keyword("dtype", kind))
                    ast.fix_missing_locations(node)
            case ast.Call(func=ast.Attribute(attr="pad") | ast.Name(id="pad"), args=arguments):
                # A script hands no whole number on as a decimal there.
                for fill in (*arguments[3:4], *(k.value for k in node.keywords if k.arg == "value")):
                    make_decimal(fill)
            case ast.Call(func=ast.Attribute(value=tensor, attr="norm"), args=[], keywords=[*named]) if (
                getattr(tensor, "attr", getattr(tensor, "id", "")) not in ("torch", "linalg")
                and any(k.arg == "dim" for k in named)
                and all(k.arg != "p" for k in named)
            ):
                # A script's method has no exponent by default.
                node.keywords.append(ast.keyword("p", ast.Constant(2)))
                return ast.fix_missing_locations(node)
            case ast.Call(func=ast.Attribute(value=tensor, attr="cpu"), args=[], keywords=[]):
                # ONNX has no devices.
                return tensor
            case ast.Call(func=ast.Attribute(value=tensor, attr=("bool" | "bfloat16") as kind), args=[], keywords=[]):
                # Of the casts of a tensor these two have no method in scripts, which take torch's number of a type.
                cast = ast.copy_location(ast.Attribute(tensor, "to", ast.Load()), node.func)
                number = ast.copy_location(ast.Constant(_TYPES[kind]), node)
                return ast.copy_location(ast.Call(cast, [number], []), node)
        return node


def _is_decimal(node: ast.expr) -> bool:
    """True for arithmetic that may give something else than a whole number."""
    return any(
        isinstance(n, ast.Constant | ast.Call | ast.Div | ast.Compare) and not _is_whole(n) for n in ast.walk(node)
    )


def _is_whole(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Call(func=ast.Name(id="len" | "int")) | ast.Call(func=ast.Attribute(attr="size" | "dim" | "numel")):
            return True
        case ast.Call(func=ast.Name(id="min" | "max" | "abs")):
            return True
    return False


def _is_repeatable(node: ast.expr) -> bool:
    """True for a variable, and for choices between such."""
    match node:
        case ast.Name():
            return True
        case ast.Call(func=ast.Attribute(attr=("where" | "ones_like" | "zeros_like")), args=arguments, keywords=[]):
            return all(_is_repeatable(a) for a in arguments[-2:])
    return False


def _literals(node: ast.expr) -> Iterator[ast.Constant]:
    """The numbers that stand in a list of lists."""
    match node:
        case ast.Constant():
            yield node
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            for element in elements:
                yield from _literals(element)
        case ast.UnaryOp(operand=operand):
            yield from _literals(operand)


def _without_slice_of_one(index: ast.expr) -> list[ast.expr]:
    match index:
        case ast.Slice(
            lower=ast.Name() as row, upper=ast.BinOp(ast.Name(id=name), ast.Add(), ast.Constant(value=1)), step=None
        ) if row.id == name:
            return [row, ast.copy_location(ast.Constant(None), index)]
    return [index]
