"""Lists that grow by other forms than `append`, and sums of what a loop gives, in forms that a script knows.

    rows += [a, b]                                  rows.append(a)
                                                    rows.append(b)
    rows = [*rows, a]                               rows.append(a)
    y = sum(x[:, t] for t in range(n))              total = 0
                                                    for t in range(n):
                                                        total = total + x[:, t]
                                                    y = total
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence

from trtconv.export.exporters.scripted.forms.order import EMBEDDED, SIMPLE, may_write
from trtconv.export.exporters.scripted.forms.variables import all_names, assigned, unused

# What reads a list and gives no other name for it.
_READING = frozenset(("stack", "cat", "concat", "vstack", "hstack", "len"))


def write_lists(function: ast.FunctionDef, namespace: Container[str] = ()) -> ast.FunctionDef:
    """The function with lists that grow by `append` alone, and sums of generators as loops; changed in place.

    `namespace` has the names of its file.
    """
    own = {name for name in all_names(function) if _is_only_read(function, name)}
    result: ast.FunctionDef = _Appending(own).visit(function)
    names = all_names(function)
    if "sum" not in namespace and not any(_names_sum(n) for n in ast.walk(function)):
        result.body = [new for statement in result.body for new in _Summing(names).written(statement)]
    return ast.fix_missing_locations(result)


def _names_sum(node: ast.AST) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == "sum"
    return isinstance(node, ast.Name) and node.id == "sum" and isinstance(node.ctx, ast.Store)


def _is_only_read(function: ast.FunctionDef, name: str) -> bool:
    """True for a list that has no second name: one that grows in its place is the one that a new one would be."""
    if any(a.arg == name for a in ast.walk(function.args) if isinstance(a, ast.arg)):
        return False
    reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    allowed = {id(n) for parent in ast.walk(function) for n in _allowed_reads(parent, name)}
    return all(id(n) in allowed for n in reads)


def _allowed_reads(parent: ast.AST, name: str) -> Iterator[ast.AST]:
    match parent:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner) as read, attr="append" | "extend")) if owner == name:
            yield read
        case ast.Call(func=ast.Attribute(attr=method), args=[read, *_]) if method in _READING:
            yield read
        case ast.Call(func=ast.Name(id=method), args=[read, *_]) if method in _READING:
            yield read
        case ast.Subscript(value=read, slice=index, ctx=ast.Load()) if not isinstance(index, ast.Slice):
            yield read
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            grown = _grown_by(value, name)
            yield from () if grown is None else (_list_of(value),)


def _grown_by(value: ast.expr, name: str) -> Sequence[ast.expr] | None:
    """What `rows + [a, b]` and `[*rows, a, b]` put behind the list; None for anything else."""
    match value:
        case ast.BinOp(left=ast.Name(id=read), op=ast.Add(), right=ast.List(elts=more)) if read == name:
            return more if _are_plain(more) else None
        case ast.List(elts=[ast.Starred(value=ast.Name(id=read)), *more]) if read == name:
            return more if _are_plain(more) else None
    return None


def _list_of(value: ast.expr) -> ast.AST:
    match value:
        case ast.BinOp(left=read) | ast.List(elts=[ast.Starred(value=read), *_]):
            return read
    return value


def _are_plain(elements: Sequence[ast.expr]) -> bool:
    return bool(elements) and not any(isinstance(e, ast.Starred) for e in elements)


class _Appending(ast.NodeTransformer):
    """`own` are lists without a second name."""

    def __init__(self, own: set[str]) -> None:
        self._own = own

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        match node:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=more)) if _are_plain(more):
                return _appends(name, more, node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        match node.targets:
            case [ast.Name(id=name)] if name in self._own:
                more = _grown_by(node.value, name)
                return node if more is None else _appends(name, more, node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        match node.value:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="extend"), args=[ast.List(elts=more)], keywords=[]
            ) if _are_plain(more):
                return _appends(name, more, node)
        return node


def _appends(name: str, elements: Sequence[ast.expr], statement: ast.stmt) -> list[ast.stmt]:
    # All elements are computed before the first of them is in the list.
    if any(isinstance(n, ast.Name) and n.id == name for e in elements[1:] for n in ast.walk(e)):
        return [statement]
    calls: list[ast.stmt] = []
    for element in elements:
        # The parser of scripts looks for an attribute in the source behind its object.
        owner = ast.copy_location(ast.Name(name, ast.Load()), element)
        method = ast.copy_location(ast.Attribute(owner, "append", ast.Load()), element)
        calls.append(ast.copy_location(ast.Expr(ast.copy_location(ast.Call(method, [element], []), element)), element))
    return calls


class _Summing:
    """`names` are those that the function uses, to which new ones are added."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def written(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement, changed in place, behind the loops of its sums."""
        if isinstance(statement, SIMPLE):
            return [*self._loops(statement), statement]
        for _, block in ast.iter_fields(statement):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                block[:] = [new for inner in block for new in self.written(inner)]
        return [statement]

    def _loops(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        # What is computed earlier than before must not read what the statement writes in place.
        if any(may_write(n) for n in ast.walk(statement)):
            return
        for parent, name, index, call in list(_sums(statement)):
            (generator, *start) = call.args
            assert isinstance(generator, (ast.GeneratorExp, ast.ListComp))
            (source,) = generator.generators
            if any(isinstance(n, EMBEDDED) for part in (generator.elt, *source.ifs) for n in ast.walk(part)):
                continue
            total = unused("total", self._names)
            # The variables of a generator are its own.
            own = {n: unused(n, self._names) for n in assigned([source.target])}
            target, element, *tests = (_renamed(e, own) for e in (source.target, generator.elt, *source.ifs))
            added = ast.BinOp(ast.Name(total, ast.Load()), ast.Add(), element)
            body: list[ast.stmt] = [ast.Assign([ast.Name(total, ast.Store())], added)]
            for test in tests[::-1]:
                body = [ast.If(test, body, [])]
            first = ast.Assign([ast.Name(total, ast.Store())], next(iter(start), ast.Constant(0)))
            for new in (first, ast.For(target, source.iter, body, [])):
                yield ast.fix_missing_locations(ast.copy_location(new, call))
            read = ast.copy_location(ast.Name(total, ast.Load()), call)
            if index is None:
                setattr(parent, name, read)
            else:
                getattr(parent, name)[index] = read


def _renamed(expression: ast.expr, names: Mapping[str, str]) -> ast.expr:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return expression


def _sums(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.Call]]:
    """The sums of one generator that are computed whenever the node is, with the fields that hold them."""
    for name, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or isinstance(child, EMBEDDED):
                continue
            yield from _sums(child)
            match child:
                case ast.Call(
                    func=ast.Name(id="sum"),
                    args=[ast.GeneratorExp(generators=[source]) | ast.ListComp(generators=[source]), *rest],
                    keywords=[],
                ) if len(rest) <= 1 and not source.is_async:
                    yield node, name, index, child
