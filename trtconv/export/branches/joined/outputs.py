"""The types of outputs that two parts of a space give under one name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.dim_names import axis_name
from trtconv.core.model.size_nodes import SizeWriter, UnwritableSizeError
from trtconv.export.branches.joined.numbering import is_joined, record_of
from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.evaluate import UnreadableError, evaluate_text
from trtconv.export.sizes.exact.whole_text import in_whole_numbers
from trtconv.proof.joint_sizes import count_sizes, size_grids

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Dims = list[int | str]
# Where a condition holds, at arrays of sizes.
Holds = Callable[[Mapping[str, "Array"]], "Array"]
# Joint sizes beyond which nothing is said of two sides together.
MOST_SIZES = 1 << 22


class CommonDims:
    """The dims of a value over the whole of a region, from those of its two sides.

    What a side of one size calls 1 is mostly what the other calls `(H // 14)*(W // 14)`. One that no nodes can work
    out, as `TruncToInt(0.1 + H / 14)`, is called by the shortest of the `texts` that says the same sizes, or by itself
    in whole numbers.
    """

    def __init__(self, is_low: Holds, trace: Trace, texts: Iterable[str]) -> None:
        self.is_low, self.space, self.region, self.specs = is_low, trace.space, trace.region, trace.specs
        whole = {t if self._is_plain(t) else in_whole_numbers(t, self.space) for t in texts}
        self.texts = sorted(filter(self._is_plain, whole), key=lambda t: (len(t), t))
        self._common: dict[tuple[int | str, int | str], int | str] = {}

    def of(self, low: Dims, high: Dims) -> Dims:
        """One dim of both sides where it says all sizes; an empty text where none of them does."""
        return [self._common_of(one, other) for one, other in zip(low, high, strict=True)]

    def _common_of(self, one: int | str, other: int | str) -> int | str:
        if one == other and (one == "" or self._is_plain(one)):
            return one
        if (one, other) not in self._common:
            self._common[one, other] = self._compared(one, other)
        return self._common[one, other]

    def _compared(self, low: int | str, high: int | str) -> int | str:
        if "" in (low, high) or count_sizes(self.space) > MOST_SIZES:
            return ""
        own = [text for text in dict.fromkeys((high, low)) if self._say((text,), low, high)]
        plain = next((text for text in own if self._is_plain(text)), "")
        return plain or next(iter(self._say(self.texts, low, high)), own[0] if own else "")

    def _say(self, texts: Iterable[int | str], low: int | str, high: int | str) -> list[int | str]:
        """Those of the texts that say the size of `low` where the condition holds and else that of `high`."""
        import numpy as np

        common = list(texts)
        try:
            for grids in size_grids(self.space, list(self.space)):
                inside = np.asarray(True)
                for guard, side in self.region:
                    inside = inside & (guard.holds_at(grids) == side)
                below, above = (evaluate_text(str(text), grids) for text in (low, high))
                expected = np.where(self.is_low(grids), below, above)
                common = [t for t in common if not ((evaluate_text(str(t), grids) != expected) & inside).any()]
        except (UnreadableError, ValueError):
            return []
        return common

    def _is_plain(self, text: int | str) -> bool:
        import onnx

        if isinstance(text, int):
            return True
        try:
            SizeWriter(self.specs, onnx.GraphProto(), "").expression(text)
        except (UnwritableSizeError, SyntaxError):
            return False
        return True


def level_outputs(low: onnx.GraphProto, high: onnx.GraphProto) -> None:
    """Give both sides' outputs one size where they say another: that of a side which holds a single size is its own."""
    for one, other in zip(low.output, high.output, strict=True):
        pairs = zip(one.type.tensor_type.shape.dim, other.type.tensor_type.shape.dim, strict=False)
        for index, sides in enumerate(pairs):
            if sides[0] == sides[1]:
                continue
            named = next((d.dim_param for d in sides if d.dim_param), axis_name(one.name, index))
            for dim in sides:
                dim.dim_param = named


def open_dims(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """The type with expressions of one side's dims left out, since the other side may have others."""
    import onnx

    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    for index, dim in enumerate(copy.type.tensor_type.shape.dim):
        if dim.dim_param and not dim.dim_param.isidentifier():
            dim.dim_param = axis_name(value.name, index)
    return copy


def widen_branches(node: onnx.NodeProto, other: onnx.NodeProto, common: CommonDims) -> None:
    """Give the branches of an If that both sides have the dims of both, in place: `node` says those of the low side."""
    recorded, others = (json.loads(record_of(n).value) for n in (node, other))
    alike = len(node.output) == len(other.output)
    for key, sizes in recorded.items():
        # Of two Ifs that do not give as many values it is not known which of them is which: nothing is said of any.
        for index, (low, high) in enumerate(zip(sizes, others[key] if alike else [[]] * len(sizes), strict=True)):
            if low != high:
                sizes[index] = common.of(low, high) if len(low) == len(high) else []
    record_of(node).value = json.dumps(recorded)
    for one, two in zip(bodies_of(node), bodies_of(other), strict=True):
        for index, value in enumerate(one.output):
            high_dims = list(two.output[index].type.tensor_type.shape.dim) if alike else []
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if axis >= len(high_dims) or dim != high_dims[axis]:
                    dim.dim_param = axis_name(value.name, axis)
        for inner, second_inner in zip(one.node, two.node, strict=False):
            if is_joined(inner) and is_joined(second_inner):
                widen_branches(inner, second_inner, common)
