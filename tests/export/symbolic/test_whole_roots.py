"""`math.isqrt` of a size, as of images that come as sequences of patches."""

import math

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner


@pytest.mark.slow
def test_the_whole_root_of_a_size(write_module, export):
    body = (
        "import math\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        side = math.isqrt(x.shape[1])\n"
        "        return x[:, : side * side].reshape(x.shape[0], side, side, 4) * side\n"
    )
    result = export(f"{write_module(body)}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=1:9:130")
    run = OnnxRuntimeRunner(result.model)
    for length in range(1, 131):
        side = math.isqrt(length)
        x = np.random.default_rng(length).standard_normal((2, length, 4)).astype(np.float32)
        (y,) = run({"x": x}).values()
        assert np.array_equal(y, x[:, : side * side].reshape(2, side, side, 4) * np.float32(side))
