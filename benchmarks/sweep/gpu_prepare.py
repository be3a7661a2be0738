"""Networks as ONNX files for a GPU machine that has no torch: `python -m benchmarks sweep.gpu_prepare FOLDER`.

Weights are random, those of matrices rounded to 15 levels, so that the files compress; the digits' are trained.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trtconv.core.files.python_file import load_python

ROOT = Path(__file__).resolve().parents[2]
IMAGE, TOKENS = "x:float32[N,3,128,128]=-3:3", "ids:int64[N,32]=0:99"
SPACE = "N=1:4:8"
NETWORKS = {
    "resnet18": "timm/resnet18", "mobilenetv3_small": "timm/mobilenetv3_small_050", "lcnet": "timm/lcnet_050",
    "regnetx_002": "timm/regnetx_002", "convnext_atto": "timm/convnext_atto", "ghostnet": "timm/ghostnet_100",
    "squeezenet": "torchvision/squeezenet1_1", "efficientnet_b0": "timm/efficientnet_b0",
    "fasternet_t0": "timm/fasternet_t0", "repvgg_a0": "timm/repvgg_a0",
}  # fmt: skip
DIGITS = ("resnet", "vit")
LEVELS = 7


def round_weights(module) -> None:
    """Round what has more than one axis to `2 * LEVELS + 1` levels; the statistics of norms stay."""
    import torch

    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                step = parameter.abs().max() / LEVELS
                parameter.copy_((parameter / step).round() * step)


def export(module, example, path: Path) -> None:
    """What a user of the plain exporter has: opset 17, a batch of any size."""
    import torch

    torch.onnx.export(
        module, (example,), str(path), input_names=["x"], output_names=["y"], opset_version=17, dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,  # Norms stay nodes: folded into weights these would not compress.
        dynamic_axes={"x": {0: "N"}, "y": {0: "N"}},
    )  # fmt: skip


def main() -> None:
    import torch

    from networks.registry import all_networks
    from networks.torchvision_operators import define_operators

    operators = define_operators()
    sys.path.insert(0, str(ROOT / "examples" / "digits"))
    folder = Path(sys.argv[1])
    (folder / "models").mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    sections = []
    for name, key in NETWORKS.items():
        torch.manual_seed(0)
        module = all_networks()[key].make().float().eval()
        round_weights(module)
        # Settled after rounding: the norms' statistics are those of the weights that are exported.
        module = settle(module)
        export(module, torch.randn(2, 3, 128, 128), folder / "models" / f"{name}.onnx")
        sections.append((name, IMAGE))
        print(name, flush=True)
    digits = load_python(ROOT / "examples" / "digits" / "networks.py", "example")
    for kind in DIGITS:
        export(digits.make(kind=kind).eval(), torch.rand(2, 1, 8, 8), folder / "models" / f"digits_{kind}.onnx")
        sections.append((f"digits_{kind}", "x:float32[N,1,8,8]=0:1"))
        print(kind, flush=True)
    text = "".join(
        f'\n[[model]]\nname = "{n}"\nmodule = "models/{n}.onnx"\ninputs = ["{i}"]\ndynamic = "{SPACE}"\n'
        for n, i in sections
    )
    (folder / "models.toml").write_text(text)
    del operators


def settle(module):
    """Values for what starts at zero, and the norms' statistics of a first batch."""
    import torch

    from networks.weights import enliven, settled

    return settled(enliven(module), (torch.rand(4, 3, 128, 128) * 6 - 3,), {})


if __name__ == "__main__":
    main()
