"""Programs that would run a command while torch reads them, or later: refused, with no command run."""

from __future__ import annotations

import dataclasses
import io
import json
import typing
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch

from tests.export.program.programs import PROGRAM, members, save_program, with_json, write_archive
from trtconv.core.errors import InvalidRequestError
from trtconv.export.module.exported_program import load_program


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    return save_program(tmp_path_factory.mktemp("programs") / "good.pt2")


def _command(mark: Path) -> str:
    return f"__import__('os').system('touch {mark}')"


def _graph(data):
    return data["graph_module"]["graph"]


def _hop(data):
    return next(n for n in _graph(data)["nodes"] if n["target"].endswith("cond"))


def _dim(data, text):
    sizes = next(t["sizes"] for t in _graph(data)["tensor_values"].values() if "as_expr" in t["sizes"][0])
    sizes[0]["as_expr"]["expr_str"] = text


def _nested_dim(data, text):
    nested = next(i["arg"]["as_graph"]["graph"] for i in _hop(data)["inputs"] if "as_graph" in i["arg"])
    next(iter(nested["tensor_values"].values()))["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}


def _stride(data, text):
    next(iter(_graph(data)["tensor_values"].values()))["strides"][0] = {"as_expr": {"expr_str": text, "hint": None}}


def _sym_int(data, text):
    next(iter(_graph(data)["sym_int_values"].values()))["as_expr"]["expr_str"] = text


def _hint(data, text):
    next(iter(_graph(data)["sym_int_values"].values()))["as_expr"]["hint"] = {"as_int": text}


def _range_name(data, text):
    data["range_constraints"][text] = {"min_val": 0, "max_val": 4}


def _range_value(data, text):
    data["range_constraints"]["s77"] = {"min_val": text, "max_val": 4}


def _unbacked_counter(data, _):
    data["range_constraints"]["u99999999999"] = {"min_val": 0, "max_val": 4}


def _operator(data, text):
    node = next(n for n in _graph(data)["nodes"] if n["target"].endswith("repeat.default"))
    node["target"] = "torch.os.system"
    node["inputs"] = [{"name": "", "arg": {"as_string": text.split("'")[3]}, "kind": 1}]


def _load_library(data, text):
    _graph(data)["nodes"][0] |= {"target": "torch.ops.load_library"}


def _operator_argument(data, text):
    _graph(data)["nodes"][0]["inputs"][0]["arg"] = {"as_operator": "torch.os.system"}


def _node_name(data, text):
    name = f"x, z={text}"
    data["graph_module"] = json.loads(
        json.dumps(data["graph_module"]).replace('{"name": "x"}', json.dumps({"name": name}))
    )
    _graph(data)["tensor_values"][name] = _graph(data)["tensor_values"].pop("x")


def _keyword(data, text):
    _hop(data)["inputs"][0] |= {"name": f"a={text}, b", "kind": 2}


def _weight_name(data, text):
    spec = data["graph_module"]["signature"]["input_specs"][0]["parameter"]
    spec["parameter_name"] = f'l.x", {text}, "y'


def _tree_key(data, text):
    signature = data["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = signature["in_spec"].replace(
        '"context": "[]"', json.dumps({"context": json.dumps([text])})[1:-1]
    )


def _tree_enum(data, text):
    signature = data["graph_module"]["module_call_graph"][0]["signature"]
    enum = json.dumps({"__enum__": True, "fqn": "hostile_module:A", "name": "A"})
    signature["in_spec"] = signature["in_spec"].replace('"context": "null"', json.dumps({"context": enum})[1:-1], 1)


def _tree_defaultdict(data, text):
    signature = data["graph_module"]["module_call_graph"][0]["signature"]
    context = json.dumps({"default_factory_module": "hostile_module", "default_factory_name": "A", "dict_context": []})
    tree = [1, {"type": "collections.defaultdict", "context": context, "children_spec": []}]
    signature["out_spec"] = json.dumps(tree)


def _argument_name(data, text):
    data["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = ["x", f"y={text}"]


def _custom_object(data, text):
    _graph(data)["custom_obj_values"] = {"a": {"name": "a", "class_fqn": "b"}}


def _deep(data, text):
    nested = {"as_string_to_argument": {"a": {"as_int": 1}}}
    for _ in range(300):
        nested = {"as_string_to_argument": {"a": nested}}
    _graph(data)["nodes"][0]["inputs"][0]["arg"] = nested


CHANGES = [
    _dim, _nested_dim, _stride, _sym_int, _hint, _range_name, _range_value, _unbacked_counter, _operator, _load_library,
    _operator_argument, _node_name, _keyword, _weight_name, _tree_key, _tree_enum, _tree_defaultdict, _argument_name,
    _custom_object, _deep,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__.strip("_"))
def test_hostile_json_is_refused_and_runs_nothing(good, tmp_path, monkeypatch, change):
    mark = tmp_path / "was_run"
    (tmp_path / "hostile_module.py").write_text(f"open({str(mark)!r}, 'w')\nclass A: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    evil = with_json(good, tmp_path / "evil.pt2", lambda data: change(data, _command(mark)))
    with pytest.raises(InvalidRequestError, match=r"in 'models/model\.json' at .+") as refused:
        load_program(evil)
    assert not mark.exists()
    assert refused.value.exit_code == 2


def test_the_payload_is_live_and_torch_alone_would_run_it(good, tmp_path):
    mark = tmp_path / "was_run"
    evil = with_json(good, tmp_path / "evil.pt2", lambda data: _dim(data, _command(mark)))
    with pytest.raises(Exception):  # noqa: B017
        torch.export.load(evil)
    assert mark.exists()


def test_the_command_line_refuses_with_one_line_that_names_the_expression(good, tmp_path, capsys):
    from trtconv.cli.main import run

    mark = tmp_path / "was_run"
    evil = with_json(good, tmp_path / "evil.pt2", lambda data: _sym_int(data, _command(mark)))
    words = ["export", str(evil), "--input", "x:float32[N,4]", "y:float32[M]", "--dynamic", "N=2:4:8", "M=4:5:8"]
    with pytest.raises(SystemExit) as ended:
        run([*words, "-o", str(tmp_path / "out" / "m.onnx")])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "models/model.json" in error
    assert "expr_str" in error
    assert "__import__" in error
    assert "Traceback" not in error
    assert not mark.exists()
    assert not (tmp_path / "out").exists()


def test_guards_and_custom_metadata_are_not_handed_on(good, tmp_path):
    mark = tmp_path / "was_run"

    def change(data):
        data["guards_code"] = [_command(mark)]
        data["graph_module"]["metadata"] = {"custom": "{}"}
        _graph(data)["nodes"][0]["metadata"] |= {"source_fn_stack": "a,torch.os.system", "from_node": "[]"}

    program = load_program(with_json(good, tmp_path / "guarded.pt2", change)).program
    outputs = program(torch.ones(5, 4), torch.ones(7))
    assert outputs[1].shape == (7,)
    assert not mark.exists()
    assert all("source_fn_stack" not in n.meta for n in program.graph.nodes)


def test_dynamic_sizes_still_load(good):
    module = load_program(good)
    branch, ones = module.named_forward(x=torch.ones(5, 4), y=torch.ones(7))
    assert branch.shape == (5 * 5 + 2, 4)
    assert ones.shape == (7,)


def test_the_layout_of_torch_2_7_loads_and_is_checked(good, tmp_path):
    from torch._export.serde.schema import SCHEMA_VERSION
    from torch._export.serde.serialize import serialize

    artifact = serialize(torch.export.load(good))
    mark = tmp_path / "was_run"
    data = json.loads(artifact.exported_program)
    for name, hostile in (("old", False), ("evil", True)):
        if hostile:
            _dim(data, _command(mark))
        with zipfile.ZipFile(tmp_path / f"{name}.pt2", "w") as archive:
            archive.writestr("version", ".".join(map(str, SCHEMA_VERSION)))
            archive.writestr("serialized_exported_program.json", json.dumps(data))
            archive.writestr("serialized_state_dict.pt", artifact.state_dict)
            archive.writestr("serialized_constants.pt", artifact.constants)
            archive.writestr("serialized_example_inputs.pt", artifact.example_inputs)
    outputs = load_program(tmp_path / "old.pt2").named_forward(x=torch.ones(5, 4), y=torch.ones(7))
    assert outputs[1].shape == (7,)
    with pytest.raises(InvalidRequestError, match=r"serialized_exported_program\.json"):
        load_program(tmp_path / "evil.pt2")
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["data/aotinductor/model/a.so", "models/other.json", "data/constants/custom_obj_0", "models/model.json/x",
             "data/constants/opaque_obj_0", "data/executorch/a", "xl_model_weights/a", "MODELS/model.json"],
)  # fmt: skip
def test_members_that_are_no_tensors_are_refused(good, tmp_path, name):
    evil = write_archive(tmp_path / "evil.pt2", members(good) | {name: b"\x7fELF"})
    with pytest.raises(InvalidRequestError, match="could run code"):
        load_program(evil)


def test_a_second_program_of_the_same_name_is_refused(good, tmp_path):
    content = members(good)
    evil = write_archive(tmp_path / "evil.pt2", content)
    with zipfile.ZipFile(evil, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(f"evil/{PROGRAM}", content[PROGRAM])
    with pytest.raises(InvalidRequestError, match="twice"):
        load_program(evil)


def test_compressed_members_are_refused_before_they_are_unpacked(good, tmp_path):
    content = members(good) | {"data/weights/weight_7": bytes(1 << 20)}
    evil = write_archive(tmp_path / "evil.pt2", content, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidRequestError, match="compressed"):
        load_program(evil)


def test_a_key_that_is_twice_in_the_json_is_refused(good, tmp_path):
    content = members(good)
    content[PROGRAM] = content[PROGRAM].replace(
        b'{"graph_module":', b'{"guards_code": [], "guards_code": [], "graph_module":'
    )
    with pytest.raises(InvalidRequestError, match="a key twice"):
        load_program(write_archive(tmp_path / "evil.pt2", content))


@pytest.mark.parametrize(
    "member", ["data/weights/model_weights_config.json", "data/constants/model_constants_config.json"]
)
def test_payloads_that_are_pickled_objects_are_refused(good, tmp_path, member):
    def change(data):
        data["config"]["a"] = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}

    with pytest.raises(InvalidRequestError, match=f"in '{member}' at config"):
        load_program(with_json(good, tmp_path / "evil.pt2", change, member))


def test_a_fake_tensor_in_a_pickle_is_refused(good, tmp_path):
    from torch._export.serde import serialize

    mark = tmp_path / "was_run"
    meta = {"dtype": 7, "sizes": [{"as_expr": {"expr_str": _command(mark)}}], "requires_grad": False, "strides": [],
            "device": {"type": "cpu", "index": None}, "storage_offset": {"as_int": 0}, "layout": 7}  # fmt: skip

    class Fake:
        def __reduce__(self):
            return serialize._reconstruct_fake_tensor, (json.dumps(meta).encode(), False)

    payload = io.BytesIO()
    torch.save(((Fake(),), {}), payload)
    content = members(good) | {"data/sample_inputs/model.pt": payload.getvalue()}
    with pytest.raises(InvalidRequestError, match="could run code"):
        load_program(write_archive(tmp_path / "evil.pt2", content))
    assert not mark.exists()


def test_every_text_of_torchs_schema_has_a_rule():
    """A field that a later torch adds has to be looked at before it is read."""
    from torch._export.serde import schema

    from trtconv.export.program.schema import RULES

    unread = {"AOTInductorModelPickleData", "ExternKernelNode", "ExternKernelNodes"}
    kinds = [k for k in vars(schema).values() if isinstance(k, type) and dataclasses.is_dataclass(k)]
    assert len(kinds) > 40
    for kind in (k for k in kinds if k.__name__ not in unread):
        for name, hint in typing.get_type_hints(kind, globalns=vars(schema)).items():
            rule = f"{kind.__name__}.{name}"
            if typing.get_origin(hint) is dict:
                assert f"{rule}*" in RULES
                hint = typing.get_args(hint)[1]
            if hint is str or str in typing.get_args(hint):
                assert rule in RULES
