"""Nodes that compute an expression of sizes, such as `8*(T // 8) + 8` or `W > 2*H`, from the shapes of the inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import replace_nodes
from trtconv.core.tensors import TensorSpec

if TYPE_CHECKING:
    import onnx

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.Mod: "Mod",
    ast.Eq: "Equal",
    ast.NotEq: "NotEqual",
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
}
CALLS = {
    "Mod": "Mod",
    "FloorDiv": "FloorDiv",
    "CleanDiv": "FloorDiv",
    "Eq": "Equal",
    "Ne": "NotEqual",
    "Max": "Max",
    "max": "Max",
    "Min": "Min",
    "min": "Min",
    "Abs": "Abs",
    "abs": "Abs",
}

LOGIC = ("Not", "And", "Or")
FLAGS = (*LOGIC, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


class UnwritableSizeError(Exception):
    """The expression is none of sizes of the inputs, or has parts that ONNX's operators do not give."""


class SizeWriter:
    """Nodes to be put into `graph`, whose names begin with `prefix`; their constants become weights of the graph.

    `dims` are the values, int64 [], of dims that are not to be read from an input.
    """

    def __init__(
        self, specs: Sequence[TensorSpec], graph: onnx.GraphProto, prefix: str, dims: Mapping[str, str] | None = None
    ) -> None:
        self.specs, self.graph, self.prefix, self.dims = specs, graph, prefix, dims or {}
        self.nodes: list[onnx.NodeProto] = []

    def expression(self, text: str) -> str:
        """The name of an int64 or boolean scalar. Raises UnwritableSizeError, and SyntaxError for no expression."""
        return self.value(ast.parse(text.strip(), mode="eval").body)

    def value(self, tree: ast.AST) -> str:
        """The name of what a part of the expression comes to."""
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
            return self.constant(tree.value)
        if isinstance(tree, ast.Name):
            return self.size(tree.id)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return self.node("Neg", self.value(tree.operand))
        if isinstance(tree, ast.BinOp) and type(tree.op) in OPERATORS:
            return self.operation(OPERATORS[type(tree.op)], self.value(tree.left), self.value(tree.right))
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and type(tree.ops[0]) in OPERATORS:
            right = self.value(tree.comparators[0])
            return self.operation(OPERATORS[type(tree.ops[0])], self.value(tree.left), right)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in CALLS:
            return self.operation(CALLS[tree.func.id], *(self.value(a) for a in tree.args))
        raise UnwritableSizeError(f"{ast.unparse(tree)} is not a condition that ONNX can compute")

    def operation(self, op: str, *inputs: str) -> str:
        """An operator as Python has it, of which ONNX may need several."""
        if op == "NotEqual":
            return self.node("Not", self.node("Equal", *inputs))
        if op == "FloorDiv":
            # ONNX's Div of integers truncates; what is left over makes it exact.
            whole = self.node("Sub", inputs[0], self.node("Mod", *inputs))
            return self.node("Div", whole, inputs[1])
        return self.node(op, *inputs)

    def size(self, name: str) -> str:
        """A dim of an input by its name."""
        if name in self.dims:
            return self.dims[name]
        spec = next((s for s in self.specs if name in s.dims), None)
        if spec is None:
            raise UnwritableSizeError(f"{name} is no dim of an input")
        axis = self.constant(spec.dims.index(name))
        return self.node("Gather", self.node("Shape", spec.name), axis)

    def constant(self, value: int) -> str:
        """A whole number, which is one weight however often it is used."""
        import onnx

        name = f"trtconv_int_{value}".replace("-", "minus_")
        if all(t.name != name for t in self.graph.initializer):
            self.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [], [value]))
        return name

    def node(self, op: str, *inputs: str, **attributes: int) -> str:
        """One node; the name of its output."""
        import onnx

        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def put_before(self, graph: onnx.GraphProto, index: int) -> None:
        """Put what was written into a graph, in front of the node at an index; its weights too."""
        present = {t.name for t in graph.initializer}
        graph.initializer.extend(t for t in self.graph.initializer if t.name not in present)
        replace_nodes(graph, [*graph.node[:index], *self.nodes, *graph.node[index:]])

    def choose(self, flag: str, first: str, second: str) -> str:
        """One of two sizes, by an int64 scalar that is 1 or 0; written so that each term is bounded by a size.

        By a Where, and by `second + flag * (first - second)`, TensorRT-RTX 1.7 ends with a segmentation fault.
        """
        other = self.node("Sub", self.constant(1), flag)
        return self.node("Add", self.node("Mul", flag, first), self.node("Mul", other, second))

    def flag(self, condition: str, makers: Mapping[str, onnx.NodeProto]) -> str:
        """1 where a condition holds and else 0, in arithmetic where `makers` has what compares two int64.

        TensorRT 8.6 builds no bool that is worked out beside shapes and decides an If as well.
        """
        from onnx import TensorProto

        maker = makers.get(condition)
        kind = "" if maker is None else maker.op_type
        if maker is None or kind not in FLAGS:
            return self.node("Cast", condition, to=TensorProto.INT64)
        if kind in LOGIC:
            parts = [self.flag(name, makers) for name in maker.input]
            if kind == "And":
                return self.node("Mul", *parts)
            return self.node("Sub", self.constant(1), parts[0]) if kind == "Not" else self.node("Max", *parts)
        first, second = maker.input
        if kind in ("Less", "LessOrEqual"):
            first, second = second, first
        one, more = self.constant(1), self.node("Sub", first, second)
        if kind == "Equal":
            return self.node("Sub", one, self.node("Min", self.node("Abs", more), one))
        if kind.endswith("OrEqual"):
            more = self.node("Add", more, one)
        return self.node("Min", self.node("Max", more, self.constant(0)), one)

    def vector(self, sizes: Sequence[str]) -> str:
        """Scalars as one int64 vector."""
        axes = self.zeros(1)
        return self.node("Concat", *(self.node("Unsqueeze", size, axes) for size in sizes), axis=0)

    def fitted(self, value: str, rank: int, sizes: str, *, is_bool: bool = False) -> str:
        """A value cut or padded at the ends of its axes to a vector of sizes, with zeros."""
        from onnx import TensorProto

        if is_bool:
            value = self.node("Cast", value, to=TensorProto.INT32)
        lacking = self.node("Sub", sizes, self.node("Shape", value))
        padded = self.node("Pad", value, self.node("Concat", self.zeros(rank), lacking, axis=0))
        # The sum of a size and what it lacks is not seen by TensorRT-RTX 1.7 to be the size.
        whole = self.node("Reshape", padded, sizes)
        return self.node("Cast", whole, to=TensorProto.BOOL) if is_bool else whole

    def zeros(self, count: int) -> str:
        """A vector of zeros, which is one weight however often it is used."""
        import onnx

        name = f"trtconv_zeros_{count}"
        if all(t.name != name for t in self.graph.initializer):
            self.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [count], [0] * count))
        return name
