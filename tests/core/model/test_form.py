"""A malformed ONNX file ends at the door with one error that names the part; well-formed ones pass."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import load_model
from trtconv.core.sizes import parse_bytes
from trtconv.core.tensors import parse_tensor
from trtconv.core.text.numbers import parse_number

FLOAT = TensorProto.FLOAT


def base() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="mul"),
        helper.make_node("Softmax", ["h"], ["y"], name="soft", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", FLOAT, [2, 3])],
        [weight],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def with_functions(calls: dict[str, list[str]]) -> onnx.ModelProto:
    model = base()
    model.opset_import.append(helper.make_opsetid("own", 1))
    for name, called in calls.items():
        values = ["a", *(f"{name}{i}" for i in range(len(called)))]
        nodes = [
            helper.make_node(c, [values[i]], [values[i + 1]], domain="own" if c in calls else "")
            for i, c in enumerate(called)
        ]
        model.functions.append(
            helper.make_function("own", name, ["a"], [values[-1]], nodes, [helper.make_opsetid("", 20)])
        )
    model.graph.node.append(helper.make_node(next(iter(calls)), ["y"], ["z"], domain="own"))
    return model


def with_call(name: str, inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
    model = with_functions({name: ["Relu"]})
    del model.graph.node[-1].input[:], model.graph.node[-1].output[:]
    model.graph.node[-1].input.extend(inputs)
    model.graph.node[-1].output.extend(outputs)
    return model


def with_version(version: int, function: bool = False) -> onnx.ModelProto:
    model = with_functions({"F": ["Relu"]})
    (model.functions[0] if function else model).opset_import[0].version = version
    return model


def raw(model, change):
    change(model.graph.initializer[0])
    return model


def attribute(model, change):
    change(model.graph.node[1].attribute[0])
    return model


def external(**entries: str) -> onnx.ModelProto:
    model = base()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return model


def nested(depth: int) -> onnx.ModelProto:
    model = base()
    model.graph.initializer.append(numpy_helper.from_array(np.ones((), np.bool_), "c"))
    graph = helper.make_graph([], "inner", [], [])
    for _ in range(depth):
        node = helper.make_node("If", ["c"], ["o"], then_branch=graph, else_branch=helper.make_graph([], "e", [], []))
        graph = helper.make_graph([node], "inner", [], [])
    model.graph.node.append(graph.node[0])
    return model


def changed(change) -> onnx.ModelProto:
    model = base()
    change(model)
    return model


def second_type(a):
    a.f = 1.0


MALFORMED = {
    "cut raw data": (raw(base(), lambda t: setattr(t, "raw_data", b"123")), "'w' holds 3 bytes"),
    "too much raw data": (raw(base(), lambda t: setattr(t, "raw_data", bytes(37))), "'w' holds 37 bytes"),
    "no data": (raw(base(), lambda t: t.ClearField("raw_data")), "'w' holds 0 entries"),
    "negative dims": (raw(base(), lambda t: t.dims.__setitem__(0, -3)), "negative dims"),
    "huge dims": (raw(base(), lambda t: t.dims.__setitem__(0, 1 << 62)), "over 2^48"),
    "unknown type": (raw(base(), lambda t: setattr(t, "data_type", 99)), "unknown element type 99"),
    "other field": (raw(base(), lambda t: t.int64_data.append(1)), "field of another element type"),
    "typed data": (
        raw(base(), lambda t: (t.ClearField("raw_data"), t.float_data.extend([1.0] * 8))), "'w' holds 8 entries"),
    "attribute of two types": (attribute(base(), second_type), "is of type 'i' and holds 'f'"),
    "attribute without type": (attribute(base(), lambda a: a.ClearField("type")), "unknown type 0"),
    "attribute the operator has otherwise": (
        attribute(base(), lambda a: a.CopyFrom(helper.make_attribute("axis", 1.5))), "the operator takes 'i'"),
    "attribute twice": (changed(lambda m: m.graph.node[1].attribute.append(helper.make_attribute("axis", 0))),
                        "'axis' is defined twice"),
    "attribute absent": (changed(lambda m: m.graph.node.append(helper.make_node("Concat", ["y"], ["z"]))),
                         "node 2 (Concat) lacks its attribute 'axis'"),
    "output twice": (changed(lambda m: m.graph.node[1].output.__setitem__(0, "h")), "'h' is defined twice"),
    "initializer twice": (changed(lambda m: m.graph.initializer.append(m.graph.initializer[0])), "'w' is defined"),
    "no operator": (changed(lambda m: m.graph.node[0].ClearField("op_type")), "node 'mul' has no operator"),
    "unknown input type": (
        changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77)), "'x' has the unknown"),
    "more than it takes": (with_call("F", ["y", "y"], ["z"]), "'F' with 2 inputs, and it has 1"),
    "an empty one more": (with_call("F", ["y", ""], ["z"]), "'F' with 2 inputs, and it has 1"),
    "more than it gives": (with_call("F", ["y"], ["z", "other"]), "'F' with 2 outputs, and it has 1"),
    "version": (with_version(1 << 40), "imports version 1099511627776 of 'ai.onnx'"),
    "version below zero": (with_version(-1), "imports version -1"),
    "version of a function": (with_version(1 << 40, function=True), "imports version 1099511627776"),
    "own call": (with_functions({"F": ["F"]}), "'F' calls itself"),
    "calls in a circle": (with_functions({"F": ["G"], "G": ["H"], "H": ["F"]}), "calls itself"),
    "calls without end": (
        with_functions({f"F{i}": [f"F{i + 1}" if i < 30 else "Relu"] * 2 for i in range(31)}), "make 4294967296 nodes"),
    "nothing gives it": (
        changed(lambda m: m.graph.node[1].input.__setitem__(0, "nowhere")),
        "the node Softmax 'soft' reads 'nowhere', which no node, input or initializer gives",
    ),
    "an output from nowhere": (
        changed(lambda m: m.graph.output.add(name="z")),
        "the output 'z' is given by no node",
    ),
    "nested deeply": (nested(25), "nested over 24 deep"),
    "outside": (external(location="../w.bin"), "outside of the model's folder"),
    "absolute": (external(location="/etc/passwd"), "outside of the model's folder"),
    "no place": (external(offset="0"), "outside of the model's folder"),
    "negative offset": (external(location="w.bin", offset="-1"), "the offset '-1'"),
    "length in words": (external(location="w.bin", length="many"), "the length 'many'"),
    "other length": (external(location="w.bin", length="35"), "35 bytes of external data, its dims need 36"),
}  # fmt: skip


@pytest.mark.parametrize(("model", "message"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_named(tmp_path, model, message):
    (tmp_path / "w.bin").write_bytes(bytes(36))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidRequestError) as caught:
        load_model(path)
    assert message in caught.value.message


@pytest.mark.parametrize("text", [b"mul", b"Softmax", b"axis", b"g", b"w"])
def test_text_that_is_not_utf_8(tmp_path, text):
    data = base().SerializeToString()
    path = tmp_path / "m.onnx"
    at = data.index(bytes([len(text)]) + text) + 1
    path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(InvalidRequestError, match="not UTF-8"):
        load_model(path)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(36))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "secret")
    (folder / "m.onnx").write_bytes(external(location="w.bin").SerializeToString())
    with pytest.raises(InvalidRequestError, match="outside of the model's folder"):
        load_model(folder / "m.onnx")


WELL_FORMED = {
    "plain": base(),
    "functions": with_functions({"F": ["G", "Relu"], "G": ["Relu"]}),
    "nested": nested(12),
    "external, its weights elsewhere": external(location="w.bin", offset="0", length="36"),
    "typed": raw(base(), lambda t: (t.ClearField("raw_data"), t.float_data.extend([1.0] * 9))),
    "empty": raw(base(), lambda t: (t.dims.__setitem__(0, 0), setattr(t, "raw_data", b""))),
}


@pytest.mark.parametrize("model", WELL_FORMED.values(), ids=WELL_FORMED)
def test_what_is_well_formed_passes(tmp_path, model):
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert load_model(path).graph.node


@pytest.mark.parametrize("dtype", sorted(set(TensorProto.DataType.values()) - {0}))
@pytest.mark.parametrize("raw_data", [True, False])
def test_every_element_type_that_onnx_writes_passes(tmp_path, dtype, raw_data):
    values = ["a", "b", "c"] if dtype == TensorProto.STRING else np.zeros(3)
    if dtype == TensorProto.STRING and raw_data:
        pytest.skip("strings have no raw form")
    if raw_data:
        values = helper.tensor_dtype_to_np_dtype(dtype).type(0)
        tensor = numpy_helper.from_array(np.full(3, values), "w")
        if tensor.data_type != dtype:
            pytest.skip("NumPy has no such type")
    else:
        tensor = helper.make_tensor("w", dtype, [3], values)
    model = base()
    model.graph.initializer.append(tensor)
    model.graph.initializer[1].name = "more"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert len(load_model(path).graph.initializer) == 2


@pytest.mark.parametrize("text", ["1e400", "1e99", "9" * 5000, "-1", "nan", "inf", "1e999999999", "20000000TiB"])
def test_a_size_beyond_all_memory(text):
    with pytest.raises(InvalidRequestError):
        parse_bytes(text)


@pytest.mark.parametrize(
    "value",
    ["1e400", "nan", "inf", "-inf", "-1", "x", "", True, None, 10**400, pytest.param(10**5000, id="long"), 11],
)
def test_a_number_out_of_bounds(value):
    with pytest.raises(InvalidRequestError, match="must be a finite number from 0 to 10"):
        parse_number(value, "it", 0, 10)


@pytest.mark.parametrize("bounds", ["0:inf", "nan:1", "0:1e400", "-inf:inf"])
def test_a_value_range_without_end(bounds):
    with pytest.raises(InvalidRequestError):
        parse_tensor(f"x:float32[2]={bounds}")
