"""The compiled library says of its plugins what the descriptions say, to a probe and to TensorRT 11.4's registry."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.plugins.cases import CASES, Case
from tests.plugins.conftest import Native
from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.tensorrt.builder.weak_types import PLUGIN_TYPES
from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.described.registry import PLUGINS, find_plugin
from trtconv.plugins.description import PluginDescription

pytestmark = pytest.mark.slow

# nvinfer1::DataType numbers of the types in a description.
NUMBERS = {"float32": 0, "float16": 1, "bfloat16": 7}


def expected_creators(weak: bool = False) -> list[str]:
    """Of a library for TensorRT 8.6, which types weakly, with the field that says what each tensor is."""
    lines = []
    for plugin in PLUGINS:
        fields = [f"{a.name}:{'float' if a.kind == 'float' else 'int'}:{a.length}" for a in plugin.attributes]
        if weak:
            fields.append(f"{PLUGIN_TYPES}:int:{len(plugin.inputs) + len(plugin.outputs)}")
        lines.append(" ".join([plugin.op_type, plugin.version, "trtconv", *fields]))
    return lines


def is_v2(request: pytest.FixtureRequest) -> bool:
    return "v2" in request.node.callspec.id.split("-")


def test_creators_and_fields(native: Native, request: pytest.FixtureRequest) -> None:
    assert native.ask("creators").splitlines() == expected_creators(is_v2(request))


def combinations(plugin: PluginDescription, bfloat16: bool) -> set[str]:
    variables = [name for name, _ in plugin.types]
    allowed = [[NUMBERS[t] for t in types if bfloat16 or t != "bfloat16"] for _, types in plugin.types]
    tensors = [variables.index(t.type) for t in (*plugin.inputs, *plugin.outputs)]
    return {" ".join(str(chosen[v]) for v in tensors) for chosen in itertools.product(*allowed)}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.op_type)
def test_types(native: Native, plugin: PluginDescription, request: pytest.FixtureRequest) -> None:
    actual = native.ask("types", plugin.op_type, str(len(plugin.inputs))).splitlines()
    assert set(actual) == combinations(plugin, not is_v2(request))


def test_a_plugin_of_a_weakly_typed_network_takes_the_types_of_the_graph(native_v2: Native) -> None:
    def types(values: str) -> list[str]:
        return native_v2.ask("types", "TrtconvInstanceNorm", "3", f"element_types=i:{values}").splitlines()

    assert set(types("-1,0,-1,-1")) == {"0 0 0 0", "1 0 0 1"}
    assert types("1,-1,1,1") == ["1 1 1 1"]
    assert len(types("-1,-1,-1,-1")) == 4


def test_a_plugin_says_whether_it_can_run_here(native: Native) -> None:
    """cuBLASLt computes nothing without a GPU; other plugins need nothing beside themselves."""
    assert native.ask("ready", "TrtconvLayerNorm") == "ready"
    if not probe_cuda().gpus:
        command = [native.probe, native.library, "ready", "TrtconvLinear"]
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert process.stdout == "not ready\n"
        assert "TrtconvLinear: it computes with cuBLASLt, and neither libcublasLt.so.13" in process.stderr


def words_of(op_type: str, shapes: Any, attributes: dict[str, Any]) -> list[str]:
    words = []
    for attribute in find_plugin(op_type).attributes:
        if attribute.name in attributes:
            value = attributes[attribute.name]
            value = dict(attribute.choices).get(value, value)
            items = value if isinstance(value, tuple) else (value,)
            kind = "f" if attribute.kind == "float" else "i"
            words.append(f"{attribute.name}={kind}:{','.join(str(i) for i in items)}")
    return ["shapes", op_type, *words, "--", *("x".join(str(d) for d in s) for s in shapes)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes_after_serialization(native: Native, case: Case) -> None:
    expected = find_plugin(case.op_type).output_shapes(case.shapes, case.attributes)[0]
    actual = native.ask(*words_of(case.op_type, case.shapes, case.attributes))
    assert actual == "x".join(str(d) for d in expected)


REFUSED: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("TrtconvL2Norm", [(1, 4, 2, 2), (5,)], {}),
    ("TrtconvL2Norm", [(4,), (4,)], {}),
    ("TrtconvL2Norm", [(1, 4), (4,)], {"axis": -1}),
    ("TrtconvL2Norm", [(1, 4), (4,)], {"eps_mode": 3}),
    ("TrtconvInstanceNorm", [(1, 4), (4,), (4,)], {}),
    ("TrtconvInstanceNorm", [(1, 4, 2), (4,), (3,)], {}),
    ("TrtconvInstanceNorm", [(1, 4, 2), (4,), (4,)], {"epsilon": -1.0}),
    ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, 0, 3)}),
    ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, 0)}),
    ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, -1, 0)}),
    ("TrtconvReflectionPad", [(3,)], {"pads": (0, 0, 0, 0)}),
    ("TrtconvAdaptivePool", [(1, 0, 3)], {}),
    ("TrtconvAdaptivePool", [(1, 2, 3)], {"output_size": (0, 1)}),
    ("TrtconvLayerNorm", [(2, 4), (4,), (3,)], {}),
    ("TrtconvLinear", [(2, 4), (5, 3), (5,), (5,)], {}),
    ("TrtconvLinear", [(2, 4), (5, 4), (4,), (4,)], {}),
    ("TrtconvLinear", [(2, 4), (5, 4), (5,), (5,)], {"added": 1}),
    ("TrtconvLinear", [(2, 4), (5, 4), (5,), (2, 5)], {}),
    ("TrtconvLinear", [(4,), (5, 4), (5,), (5,)], {}),
]


@pytest.mark.parametrize(("op_type", "shapes", "attributes"), REFUSED)
def test_the_library_refuses_what_the_description_refuses(
    native: Native, op_type: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError):
        find_plugin(op_type).output_shapes(shapes, attributes)
    assert native.ask(*words_of(op_type, shapes, attributes)).startswith("refused")


def test_nothing_of_tensorrt_or_the_cuda_runtime_is_needed(native: Native) -> None:
    needed = subprocess.run(["readelf", "-d", native.library], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed
    for name in ("nvinfer", "libcuda", "cudart"):
        assert name not in needed


LOAD = """
import sys
import tensorrt_lean_bindings as trt
registry = trt.get_plugin_registry()
trt.Logger(trt.Logger.ERROR)
assert registry.load_library(sys.argv[1]) is not None
for creator in registry.all_creators:
    if creator.plugin_namespace == "trtconv":
        fields = [f"{f.name}:{'float' if f.type == trt.PluginFieldType.FLOAT32 else 'int'}:{f.size}"
                  for f in creator.field_names]
        print(creator.name, creator.plugin_version, creator.plugin_namespace, *fields)
assert registry.get_creator("TrtconvL2Norm", "1", "trtconv") is not None
assert registry.load_library(sys.argv[1]) is None, "a second load would have to clash"
"""


def test_tensorrt_11_loads_the_library(native_v3: Native, lean_site: str) -> None:
    environment = {**os.environ, "PYTHONPATH": lean_site} if lean_site else dict(os.environ)
    command = [sys.executable, "-c", LOAD, str(native_v3.library)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert process.returncode == 0, process.stderr[-2000:]
    assert sorted(process.stdout.splitlines()) == sorted(expected_creators())
