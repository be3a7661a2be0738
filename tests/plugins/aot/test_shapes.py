"""What an embedded plugin says of shapes and launches without TensorRT: the description's rule, and clear refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.plugins.cases import EMBEDDED, Case
from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedPlugin, KernelTarget
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.sizes import (
    OPERATIONS,
    Dim,
    Expression,
    Size,
    ceil_div,
    divides,
    evaluate,
    larger,
    operation,
    product,
    round_up,
)
from trtconv.plugins.aot.launch import SIZES, float_literal, widest_pack
from trtconv.plugins.aot.registry import embedded_in, embedded_plugin
from trtconv.plugins.described.registry import PLUGINS, find_plugin

H200 = KernelTarget("9.0", 132)


def plugin_of(op_type: str) -> EmbeddedPlugin:
    return embedded_plugin(find_plugin(op_type))


def inputs_of(case: Case, dtype: str = "float32", dynamic: bool = True) -> list[EmbeddedInput]:
    rows = []
    for number, shape in enumerate(case.shapes):
        fixed = find_plugin(case.op_type).folder == "l2norm" and number == 0
        fixed_dims = {case.attributes.get("axis", 1)} if fixed else set()
        dims: tuple[Size, ...] = tuple(
            Dim(number, a) if dynamic and number == 0 and a not in fixed_dims else d for a, d in enumerate(shape)
        )
        rows.append(EmbeddedInput(dtype, dims, shape, shape))
    return rows


@pytest.mark.parametrize("case", EMBEDDED, ids=str)
def test_output_dims_are_those_of_the_description(case: Case) -> None:
    plugin = plugin_of(case.op_type)
    attributes = plugin.checked(case.attributes)
    expected = find_plugin(case.op_type).output_shapes(case.shapes, case.attributes)
    assert plugin.output_dims(case.shapes, attributes) == expected
    symbols = [tuple(Dim(i, a) for a in range(len(s))) for i, s in enumerate(case.shapes)]
    outputs = plugin.output_dims(symbols, attributes)
    assert tuple(tuple(evaluate(d, case.shapes) for d in s) for s in outputs) == expected


@pytest.mark.parametrize("case", EMBEDDED, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_case_has_a_kernel(case: Case, dtype: str) -> None:
    plugin = plugin_of(case.op_type)
    attributes = plugin.checked(case.attributes)
    for dynamic in (False, True):
        kernel = plugin.kernel(inputs_of(case, dtype, dynamic), attributes, H200)
        assert kernel.source.path.is_file()
        assert evaluate(kernel.grid, case.shapes) >= 1
        assert 32 <= evaluate(kernel.block, case.shapes) <= 1024
        assert all(0 <= evaluate(a, case.shapes) <= LARGEST for _, a in kernel.arguments)


def test_kernels_that_differ_have_names_that_differ() -> None:
    plugin = plugin_of("TrtconvReflectionPad")
    names = set()
    for pads in ((1, 1, 1, 1), (1, 1, 1, 2)):
        for dtype in ("float32", "float16"):
            x = EmbeddedInput(dtype, (Dim(0, 0), 3, 8, 8), (1, 3, 8, 8), (2, 3, 8, 8))
            names.add(plugin.kernel([x], plugin.checked({"pads": pads}), H200).entry)
    assert len(names) == 4


def refused(op_type: str, x: tuple[Size, ...], high: tuple[int, ...], *others: int, **attributes: Any) -> str:
    plugin = plugin_of(op_type)
    inputs = [EmbeddedInput("float32", x, high, high)]
    inputs += [EmbeddedInput("float32", (n,), (n,), (n,)) for n in others]
    with pytest.raises(UnsupportedError) as caught:
        plugin.kernel(inputs, plugin.checked(attributes), H200)
    assert "trtconv plugins build" in caught.value.hint
    return caught.value.message


def test_what_one_kernel_with_32_bit_arguments_cannot_do_is_refused_by_name() -> None:
    n = Dim(0, 0)
    big = (n, 64, 8192, 8192)
    assert "elements at the largest shape" in refused("TrtconvReflectionPad", big, (1, 64, 8192, 8192))
    assert "shared memory" in refused("TrtconvInstanceNorm", (n, 4, 512, 512), (1, 4, 512, 512), 4, 4)
    assert "dynamic" in refused("TrtconvL2Norm", (1, Dim(0, 1), 4, 4), (1, 9, 4, 4), 9)
    assert "outer is" in refused("TrtconvL2Norm", (n, n, 8), (70000, 70000, 8), 8, axis=2)
    assert "outputs" in refused("TrtconvAdaptivePool", (n, 4096, 9, 9), (1024, 4096, 9, 9), output_size=(32, 32))
    plugin = plugin_of("TrtconvInstanceNorm")
    mixed = [
        EmbeddedInput("float16", (n, 3, 4, 4), (1, 3, 4, 4), (1, 3, 4, 4)),
        EmbeddedInput("float16", (3,), (3,), (3,)),
        EmbeddedInput("float32", (3,), (3,), (3,)),
    ]
    with pytest.raises(UnsupportedError, match="scale is float16 and bias is float32"):
        plugin.kernel(mixed, plugin.checked({}), H200)


@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("TrtconvReflectionPad", {"pads": (1, 2, 3)}, "pads takes 4 ints"),
        ("TrtconvReflectionPad", {"pad": (1, 2, 3, 4)}, "has no attribute 'pad'"),
        ("TrtconvL2Norm", {"eps_mode": 7}, "eps_mode = 7 is outside"),
        ("TrtconvAdaptivePool", {"mode": "mean"}, "mode has no choice"),
    ],
)
def test_a_wrong_attribute_is_named(op_type: str, attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        plugin_of(op_type).checked(attributes)


def test_only_used_plugins_and_only_on_request() -> None:
    from tests.plugins.test_onnx_form import model_of

    model = model_of(EMBEDDED[0], "float32")
    assert embedded_in(model, {}) == ()
    assert embedded_in(model, {"embed_plugins": "false"}) == ()
    assert [p.op_type for p in embedded_in(model, {"embed_plugins": "true"})] == ["TrtconvL2Norm"]
    embeddable = [p for p in PLUGINS if p.embeddable]
    assert {embedded_plugin(p).op_type for p in embeddable} == {p.op_type for p in embeddable}


def test_sizes_mean_what_integers_mean() -> None:
    rng = random.Random(1)
    for _ in range(300):
        shape = tuple(rng.randrange(1, 50) for _ in range(3))
        plain: list[int] = list(shape)
        symbols: list[Size] = [Dim(0, 0), Dim(0, 1), Dim(0, 2)]
        for _ in range(6):
            name = rng.choice(sorted(OPERATIONS))
            i, j = rng.randrange(len(plain)), rng.randrange(len(plain))
            constant = rng.choice([None, None, 0, 1, 7])
            right, symbol = (plain[j], symbols[j]) if constant is None else (constant, constant)
            if (right == 0 and name.endswith("div")) or (name == "sub" and plain[i] < right):
                continue  # sizes are never negative
            plain.append(OPERATIONS[name](plain[i], right))
            symbols.append(operation(name, symbols[i], symbol))
        assert [evaluate(s, [shape]) for s in symbols] == plain


def test_sizes_that_are_known_stay_integers() -> None:
    assert (ceil_div(7, 2), round_up(33, 32), larger(2, 3), product([2, 3, 4]), divides(4, 12)) == (4, 64, 3, 24, 1)
    assert Dim(0, 1) * 1 == Dim(0, 1) == 0 + Dim(0, 1)
    assert Dim(0, 1) * 0 == 0
    assert isinstance(2 - Dim(0, 1), Expression)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_widest_pack_divides_the_row(dtype: str) -> None:
    for n in range(1, 40):
        expected = max(w for w in (1, 2, 4, 8) if n % w == 0 and w * SIZES[dtype] <= 16)
        assert widest_pack(n, dtype) == evaluate(widest_pack(Dim(0, 0), dtype), [(n,)]) == expected


def test_float_literals_are_exact() -> None:
    import numpy as np

    for value in (1e-10, 1e-5, 0.1, 1.0, 0.0, 3.0e30):
        assert float.fromhex(float_literal(value).removesuffix("F")) == float(np.float32(value))
