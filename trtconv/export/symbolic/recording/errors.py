"""What a recording does not hold: errors of torch that the user's code catches, and what other threads compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.module.user_code import Frame, calling_user_frame
from trtconv.export.symbolic.recording.aliases import tensors_in


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


class UnseenThreadError(UnsupportedError):
    """What a module computes in another thread is in no recording; `frame` is the user's line there."""

    def __init__(self, frame: Frame | None) -> None:
        super().__init__(
            "forward computes tensors in another thread; exporters follow one thread, and the file would be without it",
            hint="call the function in forward itself, without threading, a pool or asyncio.to_thread",
        )
        self.frame = frame


@dataclass
class RecordedErrors:
    """What operators raised in one recorded run, and where; and where tensors were computed in other threads."""

    errors: list[tuple[Exception, Frame | None]] = field(default_factory=list)
    threads: list[Frame | None] = field(default_factory=list)

    def in_thread(self) -> Any:
        """The mode under which another thread runs: it notes the lines that compute tensors."""
        from torch.overrides import TorchFunctionMode

        threads = self.threads

        class NotesTensors(TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                # Also what is written in place: it is given back, but by `x[i] = y`.
                if getattr(func, "__name__", "") == "__setitem__" or any(True for _ in tensors_in((result,))):
                    threads.append(calling_user_frame())
                return result

        return NotesTensors()

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
                self.errors.append((error, calling_user_frame()))
            raise

    def require_none(self) -> None:
        """At the end of a run that came through.

        Raises UnseenThreadError where another thread computed tensors, and CaughtErrorInRecordingError for the first
        error: its operator left a node without outputs, on which torch's exporter fails.
        """
        for frame in self.threads:
            raise UnseenThreadError(frame)
        for error, frame in self.errors:
            raise CaughtErrorInRecordingError(error, frame) from error
