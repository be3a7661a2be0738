"""The shape space that a rewritten model serves."""

import pytest

from tests.rewrite.harness import Case, model_of
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import save_model, set_metadata, signature
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite.alignment.align import settle_sizes


@pytest.mark.parametrize(("asked", "within"), [("N=2:2:3", True), ("N=2:4:9", False), ("N=9:9:9", False)])
def test_ranges_beyond_what_was_proven_are_refused(tmp_path, asked, within):
    """What is recorded from here on is the new range: neither `build` nor `check` would know."""
    model = model_of(Case("plain", "y = Relu(x)"))
    set_metadata(model, SPACE_KEY, "N=1:2:4")
    save_model(model, tmp_path / "m.onnx")
    request = RewriteRequest(
        tmp_path / "m.onnx", tmp_path / "r.onnx", parse_target("tensorrt==11"), space=parse_space([asked])
    )
    if within:
        settled, _ = settle_sizes(model, request, SilentProgress())
        assert str(signature(settled).space["N"]) == asked.removeprefix("N=")
    else:
        with pytest.raises(InvalidRequestError, match="goes beyond N=1:2:4, the range over which the file was proven"):
            settle_sizes(model, request, SilentProgress())
