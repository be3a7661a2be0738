"""Einsum with capital letters or spaces in its equation: the same with small letters."""

from __future__ import annotations

from string import ascii_lowercase

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an equation that is written in another way than with small letters alone."""
    equation = node.attr("equation")
    spelling = small_letters(equation)
    if spelling is None:
        return Skip("its equation has more labels than there are small letters")
    if spelling == equation:
        return NOT_THIS
    return Found((node,), lambda g: g.op("Einsum", *node.inputs, equation=spelling))


def small_letters(equation: str) -> str | None:
    """The equation with a small letter for each label and no spaces; None with more than 26 labels.

    Without an arrow the result's labels stand in alphabetical order, which is that of ASCII: it is kept.
    """
    text = "".join(equation.split())
    labels = sorted({c for c in text if c.isalpha()})
    if all(c in ascii_lowercase for c in labels):
        return text
    if len(labels) > len(ascii_lowercase):
        return None
    letters = dict(zip(labels, ascii_lowercase, strict=False))
    return "".join(letters.get(c, c) for c in text)


RULE = Rule(
    name="einsum-letters",
    why="TensorRT's parser takes small letters only in an Einsum equation; exporters keep the author's capitals.",
    ops=("Einsum",),
    find=find,
    before='Einsum(q, k, equation="B H I D, B H J D -> B H I J")',
    after='Einsum(q, k, equation="acdb,aceb->acde")',
)
