"""A file is allowed what the module itself loses by rounding, in whatever order it is computed."""


def test_norms_of_an_image_that_hardly_varies_are_equal(write_module, export):
    """Every exporter's file was refused at the constant image: ONNX Runtime adds up a mean in a row, torch in pairs."""
    path = write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        torch.manual_seed(0)\n"
        "        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.InstanceNorm2d(8), nn.PReLU(),\n"
        "            nn.ConvTranspose2d(8, 2, 3, 2, 1, 1), nn.InstanceNorm2d(2))\n\n"
        "    def forward(self, x):\n        return self.body(x)\n"
    )
    result = export(f"{path}:Net", ["x:float32[N,1,96,160]"], "N=1:1:2", exporter="torchscript")
    assert any("probe-constant" in n and "own noise was measured" in n for n in result.notes)
    assert any("probe-constant" in c.point for c in result.comparisons)


DIRECTIONS = """
class Net(nn.Module):
    def __init__(self, low=0.1, high=0.7):
        super().__init__()
        self.low, self.high = low, high
        torch.manual_seed(0)
        self.blur = nn.Conv2d(1, 1, 5, padding=2, padding_mode="replicate", bias=False)
        nn.init.constant_(self.blur.weight, 1 / 25)

    def forward(self, x):
        if not isinstance(x, torch.Tensor):
            raise TypeError("expected a tensor")
        low = float(torch.tensor(self.low))
        smooth = self.blur(self.blur(x))
        across, down = smooth[..., :-1, 1:] - smooth[..., :-1, :-1], smooth[..., 1:, :-1] - smooth[..., :-1, :-1]
        return torch.where(across > down, low, self.high)
"""


def test_a_filter_decides_by_the_noise_of_its_sums_on_a_flat_image(write_module, export):
    """The numbers in the code are fed everywhere: what compares there are differences of sums, not the input itself."""
    path = write_module(DIRECTIONS)
    result = export(f"{path}:Net", ["x:float32[N,1,H,24]=0:1"], "N=1:1:2 H=16:24:32", exporter="dynamo")
    assert result.exporter == "dynamo"
