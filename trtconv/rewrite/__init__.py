"""The second room: ONNX in, ONNX out, in the forms that the target has, every change proved and written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtconv.core.progress import Progress
    from trtconv.core.requests import RewriteRequest
    from trtconv.rewrite.engine.result import RewriteResult as RewriteResult
    from trtconv.rewrite.engine.rule import Rule


def rewrite_model(request: RewriteRequest, progress: Progress) -> RewriteResult:
    """Rewrite `request.model` for its target; see `trtconv.rewrite.room.rewrite_model`."""
    from trtconv.rewrite.room import rewrite_model as run

    return run(request, progress)


def require_request(request: RewriteRequest) -> None:
    """Raise for what is wrong before there is a model; see `trtconv.rewrite.room.require_request`."""
    from trtconv.rewrite.room import require_request as run

    run(request)


def list_rules() -> tuple[Rule, ...]:
    """The built-in rules in the order in which they are applied."""
    from trtconv.rewrite.rules import RULES

    return RULES


def __getattr__(name: str) -> object:
    if name == "RewriteResult":
        from trtconv.rewrite.engine.result import RewriteResult

        return RewriteResult
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
