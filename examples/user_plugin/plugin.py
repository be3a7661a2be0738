"""A plugin of a user's own: the sampler of a spatial transformer, the affine grid and its sampling in one kernel.

The description is all that trtconv knows of the plugin; the rule puts its node where an exporter wrote the grid out.
docs/how-to/write-a-plugin.md goes through this folder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.description import (
    FLOAT_TYPES,
    Array,
    Attributes,
    PluginAttribute,
    PluginDescription,
    Shape,
    Tensor,
)
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node

OP_TYPE = "StnSampler"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """x [N, C, H, W] and theta [N, 2, 3] give y [N, C, H, W]."""
    x, theta = inputs
    if len(x) != 4 or len(theta) != 3:
        raise InvalidRequestError(f"{OP_TYPE} takes x of rank 4 and theta of rank 3, not {len(x)} and {len(theta)}")
    for got, wanted in zip(theta, (x[0], 2, 3), strict=True):
        if got is not None and wanted is not None and got != wanted:
            raise InvalidRequestError(f"{OP_TYPE}: theta has shape {theta}, wanted [{x[0]}, 2, 3]")
    return (x,)


def positions(size: int, align_corners: bool) -> Array:
    """Where the pixels lie between -1 and 1: their centres, or the first and the last one at the ends."""
    if size == 1:
        return np.zeros(1)
    steps = np.arange(size, dtype=np.float64)
    return 2 * steps / (size - 1) - 1 if align_corners else (2 * steps + 1) / size - 1


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Bilinear sampling at theta @ (column, row, 1), zeros outside, in float64."""
    x, theta = (a.astype(np.float64) for a in inputs)
    align = bool(attributes["align_corners"])
    n, _, height, width = x.shape
    rows, columns = np.meshgrid(positions(height, align), positions(width, align), indexing="ij")
    at = np.einsum("nij,hwj->nhwi", theta, np.stack([columns, rows, np.ones_like(rows)], axis=-1))
    size = np.array([width, height])
    place = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    low = np.floor(place).astype(np.int64)
    y = np.zeros_like(x)
    batch = np.arange(n)[:, None, None]
    for down in (0, 1):
        for right in (0, 1):
            column, row = low[..., 0] + right, low[..., 1] + down
            weight = (1 - np.abs(place[..., 0] - column)) * (1 - np.abs(place[..., 1] - row))
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            taken = x[batch, :, row.clip(0, height - 1), column.clip(0, width - 1)]
            y += np.moveaxis(np.where(inside, weight, 0.0)[..., None] * taken, -1, 1)
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators, so that ONNX Runtime runs a model with the node. float32 inside."""
    if opset < 16:
        raise InvalidRequestError(f"{OP_TYPE} needs GridSample of opset 16", hint="export with opset 17 or later")
    mode = "linear" if opset >= 20 else "bilinear"
    return f"""
      xf = Cast <to = 1> (x)
      tf = Cast <to = 1> (theta)
      align = Constant <value_int: int = @align_corners> ()
      align_f = Cast <to = 1> (align)
      i0 = Constant <value_int = 0> ()
      i1 = Constant <value_int = 1> ()
      one = Constant <value_float = 1.0> ()
      two = Constant <value_float = 2.0> ()
      nought = Constant <value_float = 0.0> ()
      v0 = Constant <value_ints = [0]> ()
      v1 = Constant <value_ints = [1]> ()
      ones = Constant <value_ints = [1, 1, 1]> ()
      lift = Sub (one, align_f)
      {_positions("h", 2, "[1, -1, 1, 1]")}
      {_positions("w", 3, "[1, 1, -1, 1]")}
      columns_of_theta = Transpose <perm = [0, 2, 1]> (tf)
      c0, c1, c2 = Split <axis = 1> (columns_of_theta, ones)
      d0 = Unsqueeze (c0, v1)
      d1 = Unsqueeze (c1, v1)
      d2 = Unsqueeze (c2, v1)
      across = Mul (at_w, d0)
      along = Mul (at_h, d1)
      moved = Add (across, along)
      grid = Add (moved, d2)
      sampled = GridSample <mode = "{mode}", padding_mode = "zeros", align_corners: int = @align_corners> (xf, grid)
      y = CastLike (sampled, x)
    """


def _positions(name: str, axis: int, shape: str) -> str:
    """Statements that give at_NAME: the positions along one axis, of a shape that broadcasts over [N, H, W, 2]."""
    return f"""
      size_{name} = Shape <start = {axis}, end = {axis + 1}> (x)
      count_{name} = Squeeze (size_{name}, v0)
      step_{name} = Range (i0, count_{name}, i1)
      float_{name} = Cast <to = 1> (step_{name})
      twice_{name} = Mul (float_{name}, two)
      lifted_{name} = Add (twice_{name}, lift)
      all_{name} = Cast <to = 1> (count_{name})
      less_{name} = Sub (all_{name}, align_f)
      span_{name} = Max (less_{name}, one)
      share_{name} = Div (lifted_{name}, span_{name})
      spread_{name} = Sub (share_{name}, one)
      single_{name} = Equal (count_{name}, i1)
      line_{name} = Where (single_{name}, nought, spread_{name})
      form_{name} = Constant <value_ints = {shape}> ()
      at_{name} = Reshape (line_{name}, form_{name})
    """


STN_SAMPLER = PluginDescription(
    op_type=OP_TYPE,
    folder="stn_sampler",
    summary="The sampler of a spatial transformer: x at the positions of an affine grid, bilinear, zeros outside.",
    inputs=(Tensor("x", "T", "[N, C, H, W]"), Tensor("theta", "S", "[N, 2, 3]")),
    outputs=(Tensor("y", "T", "[N, C, H, W]"),),
    attributes=(
        PluginAttribute("align_corners", "int", 0, "as in torch's grid_sample", 0, 1, choices=(("no", 0), ("yes", 1))),
    ),
    types=(("T", FLOAT_TYPES), ("S", FLOAT_TYPES)),
    shape=output_shape,
    reference=reference,
    body=body,
)  # fmt: skip

PLUGINS = (STN_SAMPLER,)

# What exporters make a grid of. Whether it is the grid of `theta` is shown by the proof, which runs both.
GRID_OPS = (
    "Add", "Cast", "Concat", "ConstantOfShape", "Div", "Expand", "Gather", "Identity", "MatMul", "Mul", "Range",
    "Reshape", "Shape", "Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze",
)  # fmt: skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match GridSample of a grid that is made of one theta [N, 2, 3] and of the sizes of the image."""
    if node.attr("mode", "linear") not in ("linear", "bilinear") or node.attr("padding_mode", "zeros") != "zeros":
        return Skip("it samples in another mode than bilinear with zeros outside")
    image, grid = node.inputs
    theta, nodes, waiting, seen = "", [], [grid], set()
    while waiting:
        name = waiting.pop()
        if not name or name in seen or graph.constant_tensor(name) is not None:
            continue
        seen.add(name)
        dims = graph.dims(name)
        if dims is not None and len(dims) == 3 and tuple(dims[1:]) == (2, 3):
            if theta:
                return Skip("the grid is made of two transformations")
            theta = name
            continue
        maker = graph.maker(name, *GRID_OPS)
        if maker is None:
            return Skip(f"the grid depends on '{name}', so that it is no affine grid")
        nodes.append(maker)
        if maker.key != "Shape":
            waiting += maker.inputs
        elif maker.inputs[0] != image:
            return Skip("the grid has another size than the image")
    if not theta:
        return NOT_THIS
    align = int(node.attr("align_corners", 0))
    return Found((*nodes, node), lambda b: b.plugin(STN_SAMPLER, image, theta, align_corners=align))


RULES = (
    Rule(
        name="stn-sampler",
        why="The sampler works out its positions itself: no grid is written to memory and read back.",
        ops=("GridSample",),
        find=find,
        needed=lambda target: target.has_plugins,
        before="GridSample(x, Add(Add(Mul(columns, theta[0]), Mul(rows, theta[1])), theta[2]))",
        after="StnSampler(x, theta)",
        plugin=OP_TYPE,
    ),
)
