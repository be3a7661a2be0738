"""An exported program as functions of tensors that torchlib knows, node by node.

torch.onnx runs the whole program twice more through its tracers for that, half of what an export costs.
"""

from trtconv.export.exporters.functional.program import rewritten_by_node

__all__ = ["rewritten_by_node"]
