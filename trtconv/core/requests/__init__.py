"""The frozen specs that the rooms take. Paths are absolute or relative to the working directory.

Each field says beside it how the command line and trtconv.toml give it; see `trtconv.core.option`.
"""

from trtconv.core.requests.build import BuildRequest
from trtconv.core.requests.check import CheckRequest
from trtconv.core.requests.export import ExportRequest
from trtconv.core.requests.module_source import LiveModule, ModuleSource
from trtconv.core.requests.rewrite import RewriteRequest

__all__ = ["BuildRequest", "CheckRequest", "ExportRequest", "LiveModule", "ModuleSource", "RewriteRequest"]
