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
