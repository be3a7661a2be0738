from __future__ import annotations

import operator

import pytest

from trtconv.export.program.operators import require_operator


@pytest.mark.parametrize(
    "text",
    ["torch.ops.aten.add.Tensor", "torch.ops.aten.__and__.Tensor", "torch.ops.higher_order.cond", "_operator.floordiv",
     "torch.sym_max", "math.trunc"],
)  # fmt: skip
def test_operators_are_taken(text):
    require_operator(text)


@pytest.mark.parametrize(
    "text",
    [
        "torch.os.system", "torch.ops.load_library", "torch.ops.import_module", "torch.load", "torch.hub.load", "torch",
        "torch.ops.aten.from_file.default", "torch.ops.aten.save.default", "torch.ops.aten.add.op",
        "torch.ops.aten.add",
        "torch.ops.aten.add.__class__", "torch.ops.aten.__dict__.values", "torch.ops.image.write_file.default",
        "torch.ops.prim.Print.default", "torch.ops.prim.rpc_sync.default", "_operator.attrgetter",
        "_operator.methodcaller",
        "_operator.setitem", "math.factorial", "torch.ops.higher_order.triton_kernel_wrapper_functional", "#ext:op",
        "torch.ops.higher_order.call_torchbind", "torch.ops.higher_order.aoti_call_delegate", "builtins.exec", "",
        "torch.sym_max.__globals__.get", "torch.ops.aten.add.Tensor\n", "torchx.ops.aten.add.Tensor",
    ],
)  # fmt: skip
def test_what_could_do_more_than_compute_is_refused(text):
    with pytest.raises(ValueError):
        require_operator(text)


def test_torchs_arithmetic_on_sizes_is_in_the_list():
    from torch._export.serde.serialize import _SYM_OPS

    for function in _SYM_OPS:
        module = "_operator" if function.__module__ == operator.add.__module__ else function.__module__
        require_operator(f"{module}.{function.__name__}")
