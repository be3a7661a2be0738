"""Errors of torch that the user's code catches while a run is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from trtconv.core.errors import UnsupportedError
from trtconv.export.module.user_code import Frame, calling_frames, innermost_user_frame


class CaughtErrorInRecordingError(UnsupportedError):
    """A recording cannot hold an error that the module catches; `frame` is the user's line that raised it."""

    def __init__(self, cause: Exception, frame: Frame | None) -> None:
        text = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
        super().__init__(
            f"an operator raises {type(cause).__name__} ({text[:120]}), which the module catches: a recorded run has "
            "no errors in it",
            hint="decide by what makes it raise, as by x.shape, in place of try and except",
        )
        self.frame = frame


@dataclass
class RecordedErrors:
    """What operators raised in one recorded run, and where."""

    errors: list[tuple[Exception, Frame | None]] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Around an operator: the recording goes on after an error.

        torch's tracer stops for the time of an operator, and is not started again by one that raises; where the user's
        code catches the error, the next operator would end the process.
        """
        import torch

        state = torch._C._get_tracing_state()
        try:
            yield
        except Exception as error:
            if state is not None:
                torch._C._set_tracing_state(state)
                frames = [frame for _, frame in calling_frames()]
                self.errors.append((error, innermost_user_frame(frames[::-1])))
            raise

    def require_none(self) -> None:
        """At the end of a run that came through. Raises CaughtErrorInRecordingError for the first error.

        The operator left a node without outputs, on which torch's exporter fails.
        """
        for error, frame in self.errors:
            raise CaughtErrorInRecordingError(error, frame) from error
