"""The shape space that a rewritten model serves."""

import pytest

from tests.rewrite.harness import Case, model_of
from trtconv.core.model.file import save_model, set_metadata, signature
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite.alignment.align import settle_sizes


class Warnings(SilentProgress):
    def __init__(self):
        super().__init__()
        self.texts = []

    def warn(self, text):
        self.texts.append(text)


@pytest.mark.parametrize(("wanted", "warned"), [("N=2:2:3", False), ("N=2:4:9", True), ("N=9:9:9", True)])
def test_ranges_beyond_what_export_proved_are_told(tmp_path, wanted, warned):
    """`build` warns by what the model records, and that is the new range from here on."""
    model = model_of(Case("plain", "y = Relu(x)"))
    set_metadata(model, SPACE_KEY, "N=1:2:4")
    save_model(model, tmp_path / "m.onnx")
    request = RewriteRequest(
        tmp_path / "m.onnx", tmp_path / "r.onnx", parse_target("tensorrt==11"), space=parse_space([wanted])
    )
    progress = Warnings()
    settled, _ = settle_sizes(model, request, progress)
    assert str(signature(settled).space["N"]) == wanted.removeprefix("N=")
    told = [t for t in progress.texts if "goes beyond 1:2:4, the range that export proved" in t]
    assert bool(told) == warned
