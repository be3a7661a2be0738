"""Where an ONNX node comes from in the user's PyTorch code.

Export writes two metadata properties on every node, for both exporters alike: `trtconv.module` (the dotted module
path, e.g. `backbone.conv4_3`) and `trtconv.source` (`file.py:123`). Rewrites copy them; errors and reports read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MODULE_KEY = "trtconv.module"
SOURCE_KEY = "trtconv.source"
SPACE_KEY = "trtconv.space"
INPUTS_KEY = "trtconv.inputs"
PADDING_KEY = "trtconv.padding"
FIXED_ROWS_KEY = "trtconv.fixed_rows"
RULE_KEY = "trtconv.rule"
PRECISION_KEY = "trtconv.precision"
# Of a quantised graph for TensorRT 8.6: the precision of the rest, and the nodes (a line each) that stay FP32 in it.
REST_KEY = "trtconv.rest"
REST_FP32_KEY = "trtconv.rest_fp32"
# Of an If: by branch and output the dims, each a number or an expression of the inputs' dims, as JSON.
BRANCH_SIZES_KEY = "trtconv.branch_sizes"
# SHA-256 of the reference file that was written with the exported model.
REFERENCE_KEY = "trtconv.reference"


@dataclass(frozen=True)
class Origin:
    """A node's place in the user's code; empty strings where it is not known."""

    module: str = ""
    source: str = ""

    def __str__(self) -> str:
        if self.module and self.source:
            return f"{self.module} ({self.source})"
        return self.module or self.source or "unknown origin"

    def __bool__(self) -> bool:
        return bool(self.module or self.source)


def origin_of(node: Any) -> Origin:
    """The origin of an `onnx.NodeProto` (older onnx protos without metadata_props have none)."""
    properties = {p.key: p.value for p in getattr(node, "metadata_props", ())}
    return Origin(properties.get(MODULE_KEY, ""), properties.get(SOURCE_KEY, ""))


def rule_of(node: Any) -> str:
    """The rule that made an `onnx.NodeProto`; empty where none is recorded."""
    return next((str(p.value) for p in getattr(node, "metadata_props", ()) if p.key == RULE_KEY), "")
