import json

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import SEAL, digest_set, require_seal, sealed
from trtconv.core.files.digest import sha256_file

FILES = {
    "engine": "model.engine",
    "manifest": "model.engine.json",
    "rewritten": "model.trt.onnx",
    "model": "model.onnx",
    "model_weights": "model.onnx.data",
    "model_manifest": "model.onnx.json",
    "reference": "model.reference.safetensors",
    "ledger": "model.rewrites.json",
}


@pytest.mark.parametrize("subject", ["model.engine", "model.onnx", "model.trt.onnx"])
def test_the_set_is_the_same_from_each_of_its_files(tmp_path, subject):
    for role, name in FILES.items():
        (tmp_path / name).write_text(role)
    (tmp_path / "other.onnx").write_text("of another model")
    digests = digest_set(tmp_path / subject)
    assert {role: d.name for role, d in digests.items()} == FILES
    assert all(d.sha256 == sha256_file(tmp_path / d.name) for d in digests.values())


def test_only_what_exists_is_in_the_set(tmp_path):
    (tmp_path / "model.onnx").write_text("")
    assert list(digest_set(tmp_path / "model.engine")) == ["model"]


def test_a_seal_holds_over_json_and_breaks_with_any_change(tmp_path):
    data = sealed({"b": (1, 2.5), "a": {"x": "\u00e4", "y": None}})
    back = json.loads(json.dumps(data, indent=1))
    require_seal(back, tmp_path, "build again")
    shorter = {k: v for k, v in back.items() if k != "a"}
    for changed in ({**back, "b": [1, 2]}, {**back, "c": 1}, shorter, {**back, SEAL: ""}):
        with pytest.raises(InvalidRequestError, match="was changed after it was written"):
            require_seal(changed, tmp_path, "build again")
    assert sealed(back) == back
