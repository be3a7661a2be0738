"""`--align` and `--pad-to-multiple` through all commands, with engines built for TensorRT-RTX."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("tensorrt_rtx")

UNET = """
import torch
import torch.nn.functional as F
from torch import nn


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 1, 1)
        self.u, self.v = nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(16, 4, 2, 2)

    def forward(self, images):
        a = self.a(images).relu()
        b = self.b(F.max_pool2d(a, 2)).relu()
        c = self.c(F.max_pool2d(b, 2)).relu()
        b = torch.cat([b, self.u(c)], 1)
        return torch.cat([a, self.v(b)], 1)


def make():
    torch.manual_seed(0)
    return UNet().eval()
"""
IMAGES = ("--input", "images:float32[N,3,H,W]")
RANGES = ("--dynamic", "N=1:1:2", "H=9:17:27", "W=11:18:31")


@pytest.fixture
def unet(tmp_path):
    path = tmp_path / "unet.py"
    path.write_text(UNET)
    return f"{path}:make"


def manifest(path):
    return json.loads(path.read_text())


@pytest.mark.slow
def test_convert_pads(trtconv, unet, tmp_path):
    out = tmp_path / "out"
    words = ("--backend", "tensorrt-rtx", "--json", "--pad-to-multiple")
    code, stdout, err = trtconv("convert", *words, unet, *IMAGES, *RANGES, "-o", out)
    assert code == 0, err
    assert json.loads(stdout)["passed"] is True
    engine_manifest = manifest(out / "model.engine.json")
    assert engine_manifest["space"] == "N=1:1:2 H=9:17:27 W=11:18:31"
    assert '"mode": "reflect"' in engine_manifest["padding"]
    assert engine_manifest["profiles"][0]["images"] == [[1, 3, 9, 11], [1, 3, 17, 18], [2, 3, 27, 31]]
    code, text, err = trtconv("check", out / "model.trt.onnx", "--against", unet)
    assert code == 0, text + err
    code, text, _ = trtconv(
        "rewrite", out / "model.onnx", "--pad-to-multiple", "zero", "--target", "tensorrt-rtx", "-o", out / "twice.onnx"
    )
    assert code == 0
    assert "padded already" in text


def test_convert_aligns_profiles_too(trtconv, unet, tmp_path):
    out = tmp_path / "out"
    words = ("--backend", "tensorrt-rtx", "--align", "--profile", "N=1:1:1 H=9:13:20", "--profile", "N=1:2:2")
    code, _, err = trtconv("convert", unet, *IMAGES, *RANGES, "-o", out, *words)
    assert code == 0, err
    engine_manifest = manifest(out / "model.engine.json")
    assert engine_manifest["profiles"][0]["images"] == [[1, 3, 12, 12], [1, 3, 12, 20], [1, 3, 20, 28]]
    assert engine_manifest["profiles"][1]["images"] == [[1, 3, 12, 12], [2, 3, 16, 20], [2, 3, 24, 28]]
    assert manifest(out / "model.onnx.json")["space"] == "N=1:1:2 H=12:16:24%4 W=12:20:28%4"


@pytest.fixture
def foreign(unet, tmp_path):
    """The UNet as another exporter leaves it: no ranges, no origins."""
    import onnx

    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import ExportRequest, ModuleSource
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.export import export_model

    space = parse_space(["N=1:1:2 H=12:16:28%4 W=12:16:32%4"])
    model_path = tmp_path / "made.onnx"
    export_model(ExportRequest(ModuleSource(unet), (parse_tensor(IMAGES[1]),), space, model_path), SilentProgress())
    model = onnx.load(model_path)
    del model.metadata_props[:]
    path = tmp_path / "other.onnx"
    onnx.save(model, path)
    return path


def test_a_foreign_file_is_padded_aligned_built_and_checked(trtconv, unet, foreign, tmp_path):
    rewrite = ("rewrite", foreign, "--target", "tensorrt-rtx")
    code, _, err = trtconv(*rewrite, "--align", "-o", tmp_path / "x.onnx")
    assert code == 2
    assert "--dynamic H=MIN:OPT:MAX" in err
    for words, name in ((("--pad-to-multiple=edge",), "pad"), (("--align",), "align")):
        path = tmp_path / f"{name}.trt.onnx"
        code, _, err = trtconv(*rewrite, *RANGES, *words, "-o", path)
        assert code == 0, err
        code, text, err = trtconv("check", path, "--against", unet)
        assert code == 0, text + err
        code, _, err = trtconv("build", path, "--dynamic", "--backend", "tensorrt-rtx", "--no-cache")
        assert code == 0, err
    assert manifest(tmp_path / "pad.engine.json")["space"] == "N=1:1:2 H=9:17:27 W=11:18:31"
    assert manifest(tmp_path / "align.engine.json")["space"] == "N=1:1:2 H=12:16:24%4 W=12:20:28%4"


def test_build_aligns_a_foreign_file(trtconv, foreign, tmp_path):
    engine = tmp_path / "other.engine"
    words = ("build", foreign, "-o", engine, "--backend", "tensorrt-rtx", "--no-cache", "--align", "--dynamic")
    code, _, err = trtconv(*words, "N=1:1:2", "H=9:17:27", "W=11:18:31")
    assert code == 0, err
    assert manifest(tmp_path / "other.engine.json")["space"] == "N=1:1:2 H=12:16:24%4 W=12:20:28%4"
    code, _, err = trtconv(*words, "N=1:1:2", "H=9:10:11", "W=11:18:31")
    assert code == 2
    assert "H=9:10:11 has no multiple of 4" in err
