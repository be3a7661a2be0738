"""nn.Module -> ONNX that equals the module over its whole shape space. Importing this imports no torch."""

from trtconv.export.result import ExportResult
from trtconv.export.room import export_model

__all__ = ["ExportResult", "export_model"]
