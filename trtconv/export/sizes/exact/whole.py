"""The sizes of a program that FP32 rounds to another whole number than Python, and their nodes in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.evaluate import UnreadableError
from trtconv.export.sizes.exact.lines import Exact, line_of
from trtconv.export.sizes.exact.nodes import SizeNodes
from trtconv.export.sizes.exact.program import rounded_nodes, sizes_in, symbols_of
from trtconv.export.sizes.exact.quotients import Quotient, quotient_of

if TYPE_CHECKING:
    import onnx
    import torch

ExactSize = Exact | Quotient


def inexact_sizes(program: torch.export.ExportedProgram, trace: Trace) -> tuple[ExactSize, ...]:
    """The sizes of a program that FP32 rounds to another whole number somewhere in the space, as whole numbers."""
    symbols = symbols_of(program, trace)
    exact_sizes: list[ExactSize] = []
    for node in rounded_nodes(program):
        try:
            exact = _exact(node, symbols, trace)
        except (UnreadableError, KeyError, ArithmeticError, ValueError, TypeError):
            continue
        exact_sizes += [exact] if exact is not None else []
    return tuple(exact_sizes)


def _exact(node: Any, symbols: Mapping[Any, str], trace: Trace) -> ExactSize | None:
    dims = {symbols[s] for s in sizes_in(node)}
    if len(dims) == 1:
        return line_of(node, symbols, next(iter(dims)), trace)
    return quotient_of(node, symbols, tuple(n for n in trace.space if n in dims), trace) if dims else None


def write_exact(graph: onnx.GraphProto, sizes: tuple[ExactSize, ...], trace: Trace) -> int:
    """Compute these values in whole numbers, in a graph whose inputs have their names; returns how many it has."""
    replaced = 0
    for exact in sizes:
        index, node = next(((i, n) for i, n in enumerate(graph.node) if exact.name in n.output), (-1, None))
        if node is None:
            continue
        written = SizeNodes(graph, exact.name, trace)
        exact.write(written)
        written.nodes[-1].output[0] = exact.name
        for part in written.nodes:
            part.metadata_props.extend(node.metadata_props)
        del graph.node[index]
        for offset, part in enumerate(written.nodes):
            graph.node.insert(index + offset, part)
        replaced += 1
    return replaced
