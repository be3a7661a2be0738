"""The first step of a loop apart from the others, where a state is None before it, or a number (`total = 0`):

    h, outputs = None, []                          h, outputs = None, []
    for t in range(x.shape[1]):                    t, stop = 0, x.shape[1]
        h = self.cell(x[:, t], h)                  h = self.cell(x[:, t], None)
        outputs.append(h)                          outputs.append(h)
                                                   for t in range(1, stop):
                                                       h = self.cell(x[:, t], h)
                                                       outputs.append(h)

A loop that has no step at some size would then have one, so the file has to be compared at all sizes, as any file with
loops is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence

from trtconv.export.exporters.scripted.forms.folding import (
    AtLeast,
    Facts,
    Unknown,
    common,
    constant_of,
    folded,
    folded_test,
    is_constant,
)
from trtconv.export.exporters.scripted.forms.leaving import of_this_loop, without_continue
from trtconv.export.exporters.scripted.forms.steps import steps_of
from trtconv.export.exporters.scripted.forms.variables import (
    assigned,
    is_number,
    names_of_numbers,
    one_by_one,
    read,
    read_first,
)

_LEAVES = (ast.Break, ast.Return, ast.Continue)
# Over the parts of a module a script has no loop: it writes each step.
_UNROLLED = frozenset(("self", "enumerate", "zip", "reversed", "len", "list", "tuple"))


class _NotPeelableError(Exception):
    """A loop that stays as it is written."""


def peel_loops(function: ast.FunctionDef, never_given: Collection[str] = ()) -> ast.FunctionDef:
    """The function with the first steps apart of loops before which a state is None or the number that a sum starts
    from, or which set it in the first, or which choose a number by the number of the step.

    A new tree whose nodes have the lines of those they come from; the function itself where there is no such loop.
    `never_given` are parameters that are always None.
    """
    peeling = _Peeling(function)
    peeling.optional |= set(never_given)
    result = copy.copy(function)
    result.body = peeling.block(function.body, dict.fromkeys(never_given))
    return ast.fix_missing_locations(result) if peeling.count else function


class _Peeling:
    """Writes the statements of a function again, with what is known of its variables."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.count = 0
        self._names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        self._defined = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        # What is None at some line. What else is assigned to it is taken for no None; the runs are compared.
        self.optional: set[str] = set()

    def block(self, statements: Sequence[ast.stmt], facts: Facts) -> list[ast.stmt]:
        """The statements, before which `facts` hold; what holds behind them is put there."""
        result: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            result += self._written(statement, facts, statements[index + 1 :])
        return result

    def _written(self, statement: ast.stmt, facts: Facts, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        match statement:
            case ast.Assign(targets=[target], value=value):
                return self._assignment(statement, target, value, facts)
            case ast.Assign(targets=[_, _, *_], value=value) if _is_none(value):
                parts = [ast.copy_location(ast.Assign([t], value), statement) for t in statement.targets]
                return self.block(parts, facts)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value) if _is_none(value):
                return self._assignment(ast.copy_location(ast.Assign([target], value), statement), target, value, facts)
            case ast.If():
                return self._branch(statement, facts)
            case ast.For(orelse=[]):
                return self._loop(statement, facts, rest)
        new = copy.copy(statement)
        repeats = isinstance(statement, (ast.For, ast.While))
        if repeats:
            self._forget(assigned([statement]), facts)
        for name, field in ast.iter_fields(statement):
            if isinstance(field, ast.expr):
                setattr(new, name, folded(field, facts))
            elif isinstance(field, list) and field and isinstance(field[0], ast.stmt):
                setattr(new, name, self.block(field, dict(facts)))
        names = assigned([statement])
        # The body of another statement may not have run to its end.
        self._forget(names, facts) if repeats or hasattr(statement, "body") else self._write(names, facts)
        return [new]

    def _assignment(self, statement: ast.Assign, target: ast.expr, value: ast.expr, facts: Facts) -> list[ast.stmt]:
        parts = one_by_one(statement)
        if parts[0] is not statement and any(constant_of(part.value) is not Unknown.VALUE for part in parts):
            return self.block(parts, facts)
        new = ast.copy_location(ast.Assign([target], folded(value, facts), statement.type_comment), statement)
        if isinstance(target, ast.Name):
            fact = constant_of(new.value)
            if isinstance(new.value, ast.Name) and isinstance(number := facts.get(new.value.id), int | AtLeast):
                fact = number
            self.optional |= {target.id} if fact is None else set()
            self._write({target.id}, facts)
            facts[target.id] = facts[target.id] if fact is Unknown.VALUE else fact
        else:
            new.targets = [folded(target, facts)]
            self._write(assigned([target]), facts)
        return [new]

    def _branch(self, statement: ast.If, facts: Facts) -> list[ast.stmt]:
        test = folded_test(statement.test, facts)
        if isinstance(test, ast.Constant) and is_constant(test.value):
            return self.block(statement.body if test.value else statement.orelse, facts)
        other_facts = dict(facts)
        body, other = self.block(statement.body, facts), self.block(statement.orelse, other_facts)
        joined = other_facts if isinstance(statement.body[-1], _LEAVES) else common(facts, other_facts)
        facts.clear()
        facts.update(joined)
        body = body or [ast.copy_location(ast.Pass(), statement)]
        return [ast.copy_location(ast.If(test, body, other), statement)]

    def _loop(self, loop: ast.For, facts: Facts, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        earlier = set(self._defined), set(self.optional), self.count
        try:
            return self._in_two(loop, facts, rest)
        except _NotPeelableError:
            self._defined, self.optional, self.count = earlier
        iterable = folded(loop.iter, facts)
        self._forget(assigned([loop]), facts)
        new = ast.For(loop.target, iterable, self.block(loop.body, dict(facts)), [])
        return [ast.copy_location(new, loop)]

    def _in_two(self, loop: ast.For, facts: Facts, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        body = list(without_continue(loop.body))
        names, own = assigned(body), assigned([loop.target])
        constants = {n: facts[n] for n in names & read(body) if is_constant(facts.get(n, Unknown.ANYTHING))}
        # Read by the next step, or behind the loop, which a script knows as set in the loop alone.
        undefined = (names & (read_first(body) | read_first(rest))) - self._defined - own
        numbers = {n for n in names & read_first(body) if type(facts.get(n)) in (int, float)}
        sums = numbers - names_of_numbers(body, numbers | _counted(loop))
        left = any(isinstance(n, _LEAVES) for s in body for n in of_this_loop(s))
        counted = _counted(loop)
        chosen = {n for s in body for n in _choosing(s, counted)}
        if left or own & names or not (constants or undefined or sums or chosen) or read([loop.iter]) <= _UNROLLED:
            raise _NotPeelableError
        # Where a test for None follows, a loop without a step is meant, too.
        if _tests_for_none(rest, {n for n, v in constants.items() if v is None}):
            raise _NotPeelableError
        steps = steps_of(loop.target, folded(loop.iter, facts), self._names)
        if steps is None:
            raise _NotPeelableError
        first = dict(facts)
        self._write(own, first)
        first.update(steps.first_facts)
        first_body = self.block(body, first)
        later = {n: v for n, v in first.items() if n not in names or is_constant(v) or v is Unknown.VALUE}
        later.update(steps.later_facts)
        entry = dict(later)
        later_body = self.block(body, later)
        chosen -= {n for s in later_body for n in _choosing(s, counted)}
        _require_settled(constants, undefined | sums | chosen, names, entry, later)
        self.count += 1
        facts.clear()
        facts.update({n: v for n, v in common(first, later).items() if n not in own})
        others = ast.For(steps.target, steps.others, [*steps.later, *later_body], [])
        new: list[ast.stmt] = [*steps.before, *steps.first, *first_body, others]
        return [s if hasattr(s, "lineno") else ast.fix_missing_locations(ast.copy_location(s, loop)) for s in new]

    def _write(self, names: set[str], facts: Facts) -> None:
        facts.update({n: Unknown.VALUE if n in self.optional else Unknown.ANYTHING for n in names})
        self._defined |= names

    def _forget(self, names: set[str], facts: Facts) -> None:
        facts.update(dict.fromkeys(names, Unknown.ANYTHING))
        self._defined |= names


def _counted(loop: ast.For) -> set[str]:
    """The variables of the loop that are whole numbers."""
    match loop.iter, loop.target:
        case ast.Call(func=ast.Name(id="range")), ast.Name(id=name):
            return {name}
        case ast.Call(func=ast.Name(id="enumerate")), ast.Tuple(elts=[ast.Name(id=name), *_]):
            return {name}
    return set()


def _choosing(statement: ast.stmt, counted: set[str]) -> set[str]:
    """The numbers of the step that choose between a number and something else, which may be a tensor."""
    names: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case ast.IfExp(test=test, body=body, orelse=other) if is_number(body, counted) != is_number(other, counted):
                names |= read([test]) & counted
    return names


def _require_settled(constants: Facts, starting: set[str], names: set[str], entry: Facts, later: Facts) -> None:
    """Raise where the second step is not as those that follow it, or is as the first."""
    if any(n in entry and later.get(n, Unknown.ANYTHING) != entry[n] for n in names):
        raise _NotPeelableError
    turned = {n for n, v in constants.items() if entry.get(n, Unknown.ANYTHING) not in (v, Unknown.ANYTHING)}
    if any(v is None and n not in turned for n, v in constants.items()) or not (turned or starting):
        raise _NotPeelableError


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _tests_for_none(statements: Sequence[ast.stmt], names: set[str]) -> bool:
    """True where one of the variables is tested before it is written again."""
    for statement in statements:
        tests = (n for n in ast.walk(statement) if isinstance(n, ast.Compare) and isinstance(n.left, ast.Name))
        if any(t.left.id in names and _is_none(t.comparators[0]) for t in tests):  # type: ignore[attr-defined]
            return True
        if isinstance(statement, ast.Assign):
            names = names - assigned([statement])
    return False
