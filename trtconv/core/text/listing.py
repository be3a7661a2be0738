"""Lists in a line of text: the first items by name, the others by their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def list_first(items: Sequence[object], count: int = 4, separator: str = ", ") -> str:
    """The first `count` items as text, and how many more there are: `a, b and 3 more`."""
    rest = len(items) - count
    return separator.join(map(str, items[:count])) + (f" and {rest} more" if rest > 0 else "")


def name_sizes(sizes: Mapping[str, int]) -> str:
    """Sizes with their dims: `N=1, T=16`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def list_names(names: Sequence[str], count: int = 4) -> str:
    """The same for names out of a model, in quotes: `'a', 'b' and 3 more`."""
    return list_first([f"'{n}'" for n in names], count)


def describe_output_names(names: Sequence[str]) -> str:
    """How many names `--output-names` gives, and which it gives twice."""
    double = next((name for name in names if list(names).count(name) > 1), None)
    twice = f", '{double}' more than once" if double is not None else ""
    return f"--output-names gives {len(names)} name(s){twice}"
