"""The examples are what they say: numbers of the papers, and the constructs for which they are here."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from tests.examples.catalogue import HAVE_PNET, make, python_file, shared_module  # noqa: E402


def random(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def parameters(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


class TestRefineDet:
    def test_anchors_of_320(self) -> None:
        with torch.no_grad():
            outputs = shared_module("refinedet")(random(1, 3, 320, 320))
        assert {k: tuple(v.shape) for k, v in outputs.items()} == {
            "arm_loc": (1, 6375, 4),
            "arm_conf": (1, 6375, 2),
            "odm_loc": (1, 6375, 4),
            "odm_conf": (1, 6375, 21),
        }
        for name in ("arm_conf", "odm_conf"):
            torch.testing.assert_close(outputs[name].sum(-1), torch.ones(1, 6375))

    def test_l2norm_is_its_formula_and_zero_at_a_zero_pixel(self) -> None:
        norm = python_file("refinedet").L2Norm(512, 10.0)
        x = random(2, 512, 3, 5)
        x[0, :, 1, 2] = 0.0
        with torch.no_grad():
            y = norm(x)
        exact = x.double() / (x.double().pow(2).sum(1, keepdim=True).sqrt() + 1e-10) * 10.0
        torch.testing.assert_close(y.double(), exact, rtol=1e-6, atol=1e-6)
        assert torch.equal(y[0, :, 1, 2], torch.zeros(512))

    @pytest.mark.parametrize(("layer", "initial"), [("conv4_3_norm", 10.0), ("conv5_3_norm", 8.0)])
    def test_the_learned_weights_differ_by_channel(self, layer: str, initial: float) -> None:
        weight = getattr(shared_module("refinedet"), layer).weight
        assert weight.shape == (512,)
        assert initial - 1.0 <= weight.min() < weight.max() <= initial
        assert weight.unique().numel() > 500

    def test_a_black_image_has_zero_pixels_where_it_is_normalised(self) -> None:
        with torch.no_grad():
            conv4_3, conv5_3, *_ = shared_module("refinedet").backbone(torch.zeros(1, 3, 64, 64))
        assert conv4_3.abs().max() == 0.0
        assert conv5_3.abs().max() == 0.0

    def test_vgg16_has_its_published_size(self) -> None:
        # 14,714,688 are the 13 convolutions of VGG-16.
        assert parameters(shared_module("refinedet").backbone.stages) == 14_714_688


class TestTextAttention:
    @pytest.mark.parametrize("height", [24, 33, 64])
    def test_the_window_is_the_whole_height(self, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
        windows = []

        def spy(x: Any, window: Any) -> Any:
            windows.append((tuple(x.shape), list(window)))
            return original(x, window)

        original = F.avg_pool2d
        monkeypatch.setattr(F, "avg_pool2d", spy)
        with torch.no_grad():
            shared_module("text_attention")(random(2, 1, height, 50))
        assert windows == [((2, 128, height // 8, 12), [height // 8, 1])]

    def test_attention_is_a_weighted_mean_over_the_height(self) -> None:
        attention = shared_module("text_attention").attention
        x = random(2, 256, 5, 7)
        with torch.no_grad():
            column = attention.query(x).mean(dim=2, keepdim=True)
            weights = attention.score(torch.tanh(attention.key(x) + column)).softmax(dim=2)
            torch.testing.assert_close(attention(x), (x * weights).sum(dim=2))
        # Neither flat, which a mean would give as well, nor on one row.
        assert 0.25 < float(weights.max(dim=2).values.mean()) < 0.95

    @pytest.mark.parametrize("width", [48, 51, 162])
    def test_one_step_per_four_columns(self, width: int) -> None:
        with torch.no_grad():
            y = shared_module("text_attention")(random(1, 1, 32, width))
        assert y.shape == (1, width // 4, 37)
        torch.testing.assert_close(y.exp().sum(-1), torch.ones(1, width // 4))


class TestHrnet:
    def test_parameters_are_those_of_the_published_networks(self) -> None:
        assert parameters(shared_module("hrnet")) == 15_597_464
        assert round(parameters(shared_module("hrnet_seg")) / 1e6, 1) == 3.9

    def test_four_maps(self) -> None:
        with torch.no_grad():
            maps = shared_module("hrnet").backbone(random(1, 3, 64, 96))
        assert [tuple(m.shape[1:]) for m in maps] == [(18, 16, 24), (36, 8, 12), (72, 4, 6), (144, 2, 3)]

    def test_the_classifier_pools_the_whole_map(self, monkeypatch: pytest.MonkeyPatch) -> None:
        windows = []
        original = F.avg_pool2d
        monkeypatch.setattr(
            F, "avg_pool2d", lambda x, kernel_size: (windows.append(tuple(kernel_size)), original(x, kernel_size))[1]
        )
        with torch.no_grad():
            shared_module("hrnet")(random(1, 3, 64, 160))
        assert windows == [(2, 5)]

    @pytest.mark.parametrize("size", [(64, 64), (65, 99), (101, 83)])
    def test_segmentation_takes_any_size(self, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        scales = []
        original = F.interpolate

        def spy(x: Any, size: Any = None, scale_factor: Any = None, **rest: Any) -> Any:
            scales.append((size is None, scale_factor))
            return original(x, size=size, scale_factor=scale_factor, **rest)

        monkeypatch.setattr(F, "interpolate", spy)
        with torch.no_grad():
            y = shared_module("hrnet_seg")(random(1, 3, *size))
        assert y.shape == (1, 19, *(math.ceil(n / 4) for n in size))
        # 1 in stage 2, 3 modules of 3 in stage 3, 2 modules of 6 in stage 4, 3 at the end: all by size.
        assert scales == [(False, None)] * (1 + 9 + 12 + 3)


class TestStyleTransfer:
    def test_same_size_and_range(self) -> None:
        (images,) = python_file("style_transfer").photos({"N": 2, "H": 68, "W": 84}, torch.Generator().manual_seed(0))
        assert images.shape == (2, 3, 68, 84)
        assert images.min() >= 0.0
        assert images.max() <= 255.0
        assert images.std(dim=(2, 3)).min() > 8.0
        with torch.no_grad():
            y = shared_module("style_transfer")(images)
        assert y.shape == images.shape
        assert y.min() >= 0.0
        assert y.max() <= 255.0

    def test_the_structure(self) -> None:
        kinds = [type(m).__name__ for m in shared_module("style_transfer").modules()]
        assert kinds.count("ReflectionPad2d") == kinds.count("Conv2d") == 16
        assert kinds.count("InstanceNorm2d") == 15
        assert kinds.count("ResidualBlock") == 5


class TestStn:
    def test_the_identity_leaves_the_image(self) -> None:
        module = make("stn")
        images = random(2, 1, 21, 34)
        with torch.no_grad():
            module.localisation.fc2.weight.zero_()
            outputs = module(images)
        torch.testing.assert_close(outputs["straight"], images, rtol=1e-4, atol=1e-4)

    def test_theta_is_near_the_identity_but_not_it(self) -> None:
        with torch.no_grad():
            theta = shared_module("stn")(torch.rand(8, 1, 28, 28, generator=torch.Generator().manual_seed(0)))["theta"]
        off = (theta - torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).abs()
        assert 0.01 < off.max() < 0.5


class TestRoiHead:
    def test_roi_align_is_its_definition(self) -> None:
        features = random(2, 3, 9, 14).double()
        boxes = torch.tensor(
            [
                [[3.0, 7.5, 180.0, 100.0], [0.0, 0.0, 224.0, 144.0]],
                [[50.0, 20.0, 51.0, 21.0], [200.0, 130.0, 224.0, 144.0]],
            ]
        ).double()
        align = python_file("roi_head").RoIAlign(bins=7, samples=2, stride=16).double()
        actual = align(features, boxes)
        assert actual.shape == (2, 2, 3, 7, 7)
        for n in range(2):
            for r in range(2):
                want = roi_align(features[n], (boxes[n, r] / 16).tolist(), 7, 2)
                # The sampling offsets are FP32.
                torch.testing.assert_close(actual[n, r], want, rtol=1e-5, atol=1e-5)

    def test_boxes_are_boxes_inside_the_image(self) -> None:
        dims = {"N": 2, "R": 50, "H": 14, "W": 21}
        features, boxes = python_file("roi_head").sample_inputs(dims, torch.Generator().manual_seed(0))
        assert features.shape == (2, 256, 14, 21)
        assert boxes.shape == (2, 50, 4)
        assert (boxes[..., 2:] >= boxes[..., :2]).all()
        assert boxes.min() >= 0.0
        assert boxes[..., 0::2].max() <= 21 * 16
        assert boxes[..., 1::2].max() <= 14 * 16


def roi_align(features: Any, box: list[float], bins: int, samples: int) -> Any:
    """RoIAlign of one box, point by point as in the paper; positions are in features, half-pixel aligned."""
    _, height, width = features.shape
    x1, y1, x2, y2 = (v - 0.5 for v in box)
    result = torch.zeros(features.shape[0], bins, bins, dtype=features.dtype)
    for row in range(bins * samples):
        for column in range(bins * samples):
            y = min(max(y1 + (row + 0.5) * (y2 - y1) / (bins * samples), 0.0), height - 1.0)
            x = min(max(x1 + (column + 0.5) * (x2 - x1) / (bins * samples), 0.0), width - 1.0)
            top, left = int(y), int(x)
            bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
            dy, dx = y - top, x - left
            value = (
                features[:, top, left] * (1 - dy) * (1 - dx)
                + features[:, top, right] * (1 - dy) * dx
                + features[:, bottom, left] * dy * (1 - dx)
                + features[:, bottom, right] * dy * dx
            )
            result[:, row // samples, column // samples] += value / samples**2
    return result


class TestPnet:
    @pytest.mark.skipif(not HAVE_PNET, reason="needs: pip install --no-deps facenet-pytorch")
    @pytest.mark.parametrize("size", [(12, 12), (13, 24), (120, 161)])
    def test_one_window_each_two_pixels(self, size: tuple[int, int]) -> None:
        with torch.no_grad():
            outputs = shared_module("mtcnn_pnet")(random(1, 3, *size))
        h, w = (math.ceil((n - 2) / 2) - 4 for n in size)
        assert outputs["boxes"].shape == (1, 4, h, w)
        assert outputs["scores"].shape == (1, 2, h, w)

    @pytest.mark.skipif(not HAVE_PNET, reason="needs: pip install --no-deps facenet-pytorch")
    def test_the_weights_were_trained(self) -> None:
        # The paper's P-Net has 6,632 weights with its PReLUs; on a grey image a trained one is sure of no face.
        module = shared_module("mtcnn_pnet")
        assert parameters(module) == 6_632
        with torch.no_grad():
            scores = module(torch.zeros(1, 3, 40, 40))["scores"]
        assert scores[:, 0].min() > 0.9

    def test_without_the_wheel_the_error_names_the_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from importlib.metadata import PackageNotFoundError

        file = python_file("mtcnn_pnet")

        def missing(name: str) -> None:
            raise PackageNotFoundError(name)

        monkeypatch.setattr(file, "distribution", missing)
        with pytest.raises(RuntimeError, match="pip install --no-deps facenet-pytorch"):
            file.pnet()
