"""Random functions over lists, as strings of Python."""

from __future__ import annotations

from random import Random

LISTS = ("a", "b")


def program(generator: Random) -> str:
    """A function `f(self, x)` of a list of numbers that returns what two lists hold and two numbers; it may raise."""
    lines = ["a, b, s, n = [1, 2], [3, 4, 5], 0, 1", *block(generator, 0), "return a, b, s, n"]
    return "\n".join(["def f(self, x):", *(f"    {line}" for line in lines)])


def block(generator: Random, depth: int) -> list[str]:
    """A few statements."""
    return [line for _ in range(generator.randint(1, 4)) for line in statement(generator, depth)]


def statement(generator: Random, depth: int) -> list[str]:
    """One statement, with those in it."""
    kind = generator.randrange(14 if depth < 3 else 10)
    one, other = generator.choice(LISTS), generator.choice(LISTS)
    index = generator.choice(["0", "1", "-1", "0", "1", "n % 2"] if depth < 2 else ["0", "1", "-1"])
    match kind:
        case 0:
            return [f"{one}[{index}] = {number(generator)}"]
        case 1:
            return [f"{one}[{index}] += {number(generator)}"]
        case 2:
            return [f"{one}[0], {other}[1] = {number(generator)}, {number(generator)}"]
        case 3:
            return [f"{one} = [{number(generator)}, {number(generator)}]"]
        case 4:
            forms = [other, f"{other}[::-1]", f"list({other})", f"[v + 1 for v in {other}]"]
            return [f"{one} = {generator.choice(forms)}"]
        case 5:
            return [f"{one}.{generator.choice(['append(', 'append(', 'insert(0, '])}{number(generator)})"]
        case 6:
            return [f"s = {one}.pop()", f"{one}.append(s + 1)"] if generator.random() < 0.7 else [f"{one}.reverse()"]
        case 7:
            return [f"s = {number(generator)}"]
        case 8:
            return [f"n = n + len({one})"]
        case 9:
            return [f"{one} = [{number(generator)}] + {other}[:1]"]
        case 10:
            return [f"for i in range({generator.randint(1, 2)}):", *_in(generator, depth, f"{one}[i] = {one}[i] + i")]
        case 11:
            return [f"for i, v in enumerate({one}[:2]):", *_in(generator, depth, f"s = s * 2 + v + {other}[i]")]
        case 12:
            return ["for row in x:", *_in(generator, depth, f"s = s + row + {one}[0]")]
    sides = [_in(generator, depth, f"n = n + {k}") for k in (1, 2)]
    return [f"if {number(generator)} > 3:", *sides[0], "else:", *sides[1]]


def _in(generator: Random, depth: int, first: str) -> list[str]:
    return [f"    {line}" for line in [first, *block(generator, depth + 1)]]


def number(generator: Random) -> str:
    """An expression that is a number."""
    return generator.choice(["s", "n", "7", "a[0]", "b[1]", "a[-1] + 1", "b[0] * 2 % 50", "sum(a) % 9", "len(b)"])
