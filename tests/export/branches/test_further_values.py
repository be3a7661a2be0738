"""Numbers of the code are fed to the inputs that can hold them."""

from __future__ import annotations

import numpy as np

from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.further_values import further_inputs


def test_a_number_beyond_an_integers_type_is_fed_to_floats_alone():
    specs = [parse_tensor("x:float32[N]"), parse_tensor("ids:int32[N]"), parse_tensor("bytes:uint8[N]")]
    random = {"x": np.ones(3, np.float32), "ids": np.arange(3, dtype=np.int32), "bytes": np.ones(3, np.uint8)}
    feeds = list(further_inputs(specs, [random], [3e9, -1.0, 7.0]))
    assert any((feed["x"] == np.float32(3e9)).any() for feed in feeds)
    assert any((feed["ids"] == 7).any() for feed in feeds)
    assert all({n: v.dtype for n, v in feed.items()} == {n: v.dtype for n, v in random.items()} for feed in feeds)
