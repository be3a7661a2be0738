"""Following a size that the values decide through a graph, and giving it fixed rows on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import onnx
import onnx_graphsurgeon as gs
from onnx_graphsurgeon.exporters.onnx_exporter import OnnxExporter

from trtconv.rewrite.fixed_rows.row_count import RowCount, Rows, Sizes, cannot
from trtconv.rewrite.fixed_rows.selection import least
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement, export_node

T = TypeVar("T")


@dataclass
class Walk:
    """The nodes so far, and which values have rows of a count or are sizes.

    `limits` say for a suppression (by its output) how many rows are ever used; `most` is that of the model's outputs.
    """

    index: Graph
    most: int
    limits: Mapping[str, int] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    sizes: dict[str, Sizes] = field(default_factory=dict)
    births: dict[str, RowCount] = field(default_factory=dict)
    # Which count was made of which one: by cutting it to so many, or otherwise (None).
    derived: list[tuple[RowCount, RowCount, int | None]] = field(default_factory=list)
    # Counts of which a node takes every row together: a sum, the largest, a scatter.
    whole: list[RowCount] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    _remembered: dict[tuple[object, ...], object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.g = Replacement(self.index, "fixed_rows")

    def of(self, name: str) -> Rows | None:
        """The rows of a value, None where it has none."""
        return self.rows.get(name)

    def touched(self, node: Node) -> bool:
        """True when an input of the node, or what its bodies capture, has rows or is computed of a count."""
        return any(n in self.rows or n in self.sizes for n in (*node.inputs, *node.implicit))

    def keep(self, node: Node, *rows: Rows | None) -> None:
        """Leave a node as it is; `rows` are those of its outputs."""
        self.flush()
        self.nodes.append(node.proto)
        for name, state in zip(node.outputs, rows, strict=False):
            if name and state is not None:
                self.rows[name] = state

    def keep_sizes(self, node: Node, sizes: Sizes) -> None:
        """Leave a node as it is that computes sizes."""
        self.keep(node)
        self.sizes[node.output] = sizes

    def emit(self, name: str, tensor: gs.Tensor, rows: Rows | None = None) -> None:
        """Let a new tensor stand for a value of the original."""
        mine = any(tensor is o for n in self.g.nodes for o in n.outputs) and tensor.name not in self.index.names
        tensor = tensor if mine else self.g.identity(tensor)
        tensor.name = name
        self.flush()
        if rows is not None:
            self.rows[name] = rows

    def emit_last(self, name: str, tensor: gs.Tensor) -> None:
        """Let the output of the last new node stand for an output of the model."""
        tensor.name = name
        self.flush()

    def flush(self) -> None:
        """Write what was built down."""
        self.nodes += [export_node(n) for n in self.g.nodes]
        self.g.nodes.clear()

    def constants(self) -> list[onnx.TensorProto]:
        """What was built with."""
        return [OnnxExporter.export_tensor_proto(c) for c in self.g.constants]

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` gives, made once for a key: two selections by one mask have one count."""
        if key not in self._remembered:
            self._remembered[key] = make()
        return cast(T, self._remembered[key])

    def cut(self, rows: RowCount, end: Value, number: int | None) -> RowCount:
        """The count of at most `end` rows (int64[1]) of these; `number` is the end where it is a constant."""
        key = ("cut", rows, end if isinstance(end, str) else number)

        def make() -> RowCount:
            fixed = None if rows.rows is None or number is None else min(rows.rows, number)
            cut = RowCount(least(self.g, rows.count, end), fixed)
            self.derived.append((rows, cut, number))
            return cut

        return self.once(key, make)

    def is_cut(self, rows: RowCount, other: object) -> bool:
        """True for the same count, and for one of the first so many of these rows."""
        return other is rows or any(parent is rows and child is other for parent, child, _ in self.derived)

    def descends(self, rows: RowCount, other: RowCount) -> bool:
        """True where a count was made of these rows, over any number of steps: of none of them come no others."""
        if rows is other:
            return True
        return any(self.descends(rows, parent) for parent, child, _ in self.derived if child is other)

    def derive(self, parent: RowCount, child: RowCount) -> None:
        """Note that a count was made of another one by more than cutting it."""
        self.derived.append((parent, child, None))

    def require(self, node: Node, fine: bool, why: str) -> None:
        """Raise UnsupportedError unless `fine`."""
        if not fine:
            raise cannot(node, why)
