"""Which variables of a function statements write and read."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def assigned(statements: Iterable[ast.AST]) -> set[str]:
    """The variables that statements put something into; those of a comprehension are its own."""
    return {n.id for s in statements for n in _names(s) if isinstance(n.ctx, ast.Store)}


def read(statements: Iterable[ast.AST]) -> set[str]:
    """The variables that statements read."""
    return {n.id for s in statements for n in _names(s) if isinstance(n.ctx, ast.Load)}


def _names(node: ast.AST) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        yield node
    inner = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for child in ast.iter_child_nodes(node):
        for name in _names(child):
            if not (isinstance(node, _SCOPES) and name.id in inner):
                yield name


def one_by_one(statement: ast.Assign) -> list[ast.Assign]:
    """`a, b = x, y` as an assignment of each; the statement where one of them reads what another writes."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if (
            len(targets) == len(values) and not assigned(targets) & read(values)
        ):
            pairs = zip(targets, values, strict=True)
            return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]
    return [statement]


def all_names(node: ast.AST) -> set[str]:
    """Every variable and parameter in it, those of comprehensions and functions inside too."""
    return {n.id if isinstance(n, ast.Name) else n.arg for n in ast.walk(node) if isinstance(n, (ast.Name, ast.arg))}


def unused(name: str, names: set[str]) -> str:
    """The name, or one like it, that is none of the names; it is one of them then."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def read_first(statements: Sequence[ast.stmt]) -> set[str]:
    """The variables that statements may read before they write them."""
    return _read_first(statements, set())


def _read_first(statements: Sequence[ast.stmt], written: set[str]) -> set[str]:
    """As above of those that are not `written` yet; `written` has what is for sure behind them then."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            sides = [set(written), set(written)]
            names |= read([statement.test]) - written
            for side, block in zip(sides, (statement.body, statement.orelse), strict=True):
                names |= _read_first(block, side)
            written |= sides[0] & sides[1]
        elif isinstance(statement, (ast.For, ast.While)):
            head = statement.iter if isinstance(statement, ast.For) else statement.test
            names |= read([head]) - written
            own = assigned([statement.target]) if isinstance(statement, ast.For) else set()
            names |= _read_first(statement.body, written | own)
        elif isinstance(statement, ast.AugAssign):
            names |= (read([statement]) | assigned([statement])) - written
            written |= assigned([statement])
        else:
            names |= read([statement]) - written
            written |= assigned([statement])
    return names


def names_of_numbers(statements: Sequence[ast.stmt], numbers: set[str]) -> set[str]:
    """Those of the variables, numbers before the statements, that are numbers behind them for all that can be seen."""
    left = set(numbers)
    while True:
        turned = {n for s in statements for n in _turned(s, left)}
        if not turned & left:
            return left
        left -= turned


def _turned(statement: ast.AST, numbers: set[str]) -> Iterator[str]:
    """The variables that may get something else than a number, by themselves or one of several."""
    for node in ast.walk(statement):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AugAssign(
                target=ast.Name(id=name), value=value
            ):
                yield from () if is_number(value, numbers) else (name,)
            case ast.Assign(targets=targets):
                yield from (n for t in targets for n in assigned([t]))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield from () if is_number(value, numbers) else (name,)


def is_number(value: ast.expr, numbers: set[str]) -> bool:
    """True for arithmetic on constants, sizes and the variables."""
    match value:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in numbers
        case ast.BinOp(left=left, right=right):
            return is_number(left, numbers) and is_number(right, numbers)
        case ast.UnaryOp(operand=operand):
            return is_number(operand, numbers)
        case ast.IfExp(body=body, orelse=orelse):
            return is_number(body, numbers) and is_number(orelse, numbers)
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Compare():
            return True
        case ast.Call(func=ast.Name(id="len" | "int" | "float" | "bool")):
            return True
        case ast.Call(func=ast.Attribute(attr="size" | "dim" | "item" | "numel")):
            return True
        case ast.Call(func=ast.Name(id="min" | "max" | "abs" | "round"), args=arguments):
            return all(is_number(a, numbers) for a in arguments)
    return False
