"""What a run of the module raised, as an error with the user's line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import EndlessError, TrtconvError
from trtconv.core.text.error_text import first_line
from trtconv.export.module.creation import failed_at
from trtconv.export.module.noise.endless_runs import EndlessRun
from trtconv.export.module.user_code import blame, exited

if TYPE_CHECKING:
    import torch

LONGEST = 300
"""Characters of the user's own message that are quoted."""


@contextmanager
def errors_of_module(tensors: Mapping[str, torch.Tensor], base: Path) -> Iterator[None]:
    """Raise EndlessError or TrtconvError for whatever a run raises, an exception of pytest or asyncio too.

    Those are no `Exception`: `pytest.skip`, `asyncio.CancelledError`. Ctrl-C passes.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except EndlessRun as error:
        raise EndlessError(
            f"the module itself does not end within {error.seconds:.0f} s for {_shapes(tensors)}",
            hint="end its loop at infinities and NaN too, or give the ranges of the inputs with --input",
            where=_line(error, base),
        ) from error
    except SystemExit as error:
        raise exited(error, base) from error
    except BaseException as error:
        raise TrtconvError(
            f"the module itself raises {type(error).__name__} for {_shapes(tensors)}: {first_line(error)[:LONGEST]}",
            hint="correct the module, the dims and types given with --input, or the ranges given with --dynamic",
            where=_line(error, base),
        ) from error


def _line(error: BaseException, base: Path) -> str | None:
    return blame(error, base, packages=True) or failed_at(error, base)


def _shapes(tensors: Mapping[str, torch.Tensor]) -> str:
    return ", ".join(f"{n} {list(t.shape)}" for n, t in tensors.items())
