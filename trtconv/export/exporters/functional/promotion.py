"""torch.onnx's explicit type promotion, without running the nodes whose values the program has recorded."""

from __future__ import annotations

from typing import Any

import torch
from torch.onnx._internal.fx.passes import type_promotion


class _RecordedInterpreter(type_promotion._TypePromotionInterpreter):  # type: ignore[misc]
    """Runs a node only where an argument of it is promoted: shapes and types of the others stay what they are."""

    def run_node(self, n: torch.fx.Node) -> Any:
        """The recorded value of a node, after its arguments are promoted."""
        if n.op != "call_function" and n.op != "placeholder":
            return super().run_node(n)
        with self._set_current_node(n):
            rule = type_promotion.get_type_promotion_rule(n, self.type_promotion_table)
            if rule is not None:
                self._maybe_promote_node(n, rule)
        return n.meta["val"]


def promote_types(module: torch.fx.GraphModule) -> None:
    """Insert a conversion wherever operands of a node are of different types. Raises KeyError without a value."""
    promotion = type_promotion.InsertTypePromotion(module)
    promotion.interpreter = _RecordedInterpreter(module, promotion.interpreter.type_promotion_table)
    promotion.run()
