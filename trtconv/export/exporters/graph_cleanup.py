"""Tidying what the dynamo exporter writes, without changing what the author wrote.

torch's default (`optimize=True`) runs onnxscript's whole rule set. Its no-op rules match constants within 1e-8 (and a
factor within 1e-5), so `sqrt(s) + 1e-10` loses its epsilon and an all-zero pixel becomes NaN. Here only rules run that
match structure, never a rule that matches a number; batch norms stay apart, for TensorRT folds them itself.
"""

from __future__ import annotations

import copy
from typing import Any


def structural_rules() -> list[Any]:
    """onnxscript's rules that remove or join casts, reshapes, transposes, slices and clips exactly."""
    from onnxscript.rewriter.rules import common

    rules = [
        common.cast_cast_rule, common.no_op_cast_rule, common.no_op_expand_rule, common.no_op_transpose_rule,
        common.transpose_transpose_rule, common.unsqueeze_unsqueeze_rule, common.reshape_reshape_rule,
        common.flatten_to_reshape_rule, common.squeeze_reshape_1d_rule, common.slice_split_rule,
        common.one_reshape_matmul_reshape_rule, common.two_reshapes_matmul_reshape_rule,
        common.cast_constant_of_shape_rule, common.cast_constant_of_shape_without_value_rule,
        common.collapse_slice_rule, common.collapse_slice2_rule, common.materialize_reshape_shape_rule,
        common.no_op_dynamic_scatter_nd_rule, common.no_op_static_scatter_nd_rule,
        common.successive_relu_rule, common.successive_clip_rule, common.successive_clip_relu_rule,
        common.successive_relu_clip_rule, common.min_min_rule, common.max_max_rule,
        common.dropout_zero_rule, common.dropout_inference_rule,
    ]  # fmt: skip
    return [_tried_at_its_operator(rule) for rule in rules]


def _tried_at_its_operator(rule: Any) -> Any:
    """The rule, tried only at nodes of the operator that its pattern ends with.

    onnxscript finds that out late: for a pattern with two outputs it lists all nodes of the graph first, at each node.
    """
    root = rule._target_pattern.output_nodes[0].op_identifier()
    if root is None:
        return rule
    own, try_rewrite = copy.copy(rule), rule.try_rewrite

    def only_there(model: Any, graph: Any, node: Any, **options: Any) -> Any:
        return try_rewrite(model, graph, node, **options) if node.op_type == root[1] else None

    own.try_rewrite = only_there
    return own


def drop_biases_of_rank_two(model: Any) -> None:
    """Take the bias from convolutions that have none in torch.

    onnxscript 0.7.2 writes zeros of the shape [channels, 2] for it at conv3d (torch_lib/ops/core.py, `aten_conv3d`: the
    shape is that of its complex form), which ONNX Runtime refuses.
    """
    for node in model.graph.all_nodes():
        bias = node.inputs[2] if node.op_type == "Conv" and len(node.inputs) > 2 else None
        expand = bias.producer() if bias is not None else None
        if expand is None or expand.op_type != "Expand":
            continue
        zero, shape = (v.producer() for v in expand.inputs)
        if zero is not None and zero.op_type == "CastLike" and shape is not None and shape.op_type == "Concat":
            node.resize_inputs(2)


def clean_up(model: Any) -> None:
    """Inline, fold constants, apply the structural rules and remove what is unused. Works in place on an ir.Model."""
    from onnx_ir import passes
    from onnx_ir.passes import common
    from onnxscript.optimizer import fold_constants
    from onnxscript.rewriter import RewritePass

    from trtconv.export.exporters.masked_rows import hide_masked_rows, zero_hidden_rows
    from trtconv.export.recurrent.onnx_form import fold_weights

    common.InlinePass()(model)
    hide_masked_rows(model)
    drop_biases_of_rank_two(model)
    fold_weights(model)
    rewrite = RewritePass(structural_rules())
    for _ in range(2):
        fold_constants(model, onnx_shape_inference=True, input_size_limit=8192, output_size_limit=512 * 512)
        changed = rewrite(model).modified
        common.RemoveUnusedNodesPass()(model)
        if not changed:
            break
    # Only now -inf is a number.
    zero_hidden_rows(model)
    passes.Sequential(
        common.RemoveUnusedFunctionsPass(),
        common.RemoveUnusedOpsetsPass(),
        common.IdentityEliminationPass(),
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.LiftSubgraphInitializersToMainGraphPass(),
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
        common.OutputFixPass(),
        common.NameFixPass(),
    )(model)
