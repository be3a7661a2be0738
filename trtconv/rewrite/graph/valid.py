"""The last look at a rewritten graph: ONNX's checker, without the weights."""

from __future__ import annotations

import onnx

from trtconv.core.errors import TrtconvError
from trtconv.core.model.inference import without_weights


def require_valid(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Raise TrtconvError when the graph was valid ONNX and is not any more (a rule without proof can do that)."""
    problem = _problem(after)
    if problem and not _problem(before):
        raise TrtconvError(
            f"the rewritten graph is not valid ONNX: {problem}",
            hint="run again with the proof, or leave rules out with --skip until it passes",
        )


def _problem(model: onnx.ModelProto) -> str:
    light = without_weights(model)
    del light.graph.output[:]
    light.graph.output.extend(model.graph.output)
    try:
        onnx.checker.check_model(light, skip_opset_compatibility_check=True)
    except onnx.checker.ValidationError as error:
        return " ".join(str(error).split())[:300]
    return ""
