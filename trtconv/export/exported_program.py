"""Programs that `torch.export.save` wrote (`*.pt2`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    from torch import nn


def load_program(path: Path) -> nn.Module:
    """The module of an exported program. Raises InvalidRequestError when the file is none."""
    import torch

    require_file(path, "exported program")
    try:
        program = torch.export.load(str(path))
    except Exception as error:
        raise InvalidRequestError(
            f"'{path}' is no exported program of this torch: {str(error).splitlines()[0][:200]}",
            hint="write it with torch.export.save(torch.export.export(...), path)",
        ) from error
    module: nn.Module = program.module()
    return module
