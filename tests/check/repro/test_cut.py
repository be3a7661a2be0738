import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.check.models import node, small_net, write_pair
from trtconv.check import check_model
from trtconv.check.compare.intermediates import tensor_values
from trtconv.check.repro.bisection import smallest_failing
from trtconv.check.repro.cut import make_repro
from trtconv.check.repro.cutting import boundary, cut
from trtconv.check.repro.failures import same_reason
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import save_model
from trtconv.core.requests import CheckRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("culprits", [{0}, {99}, {41}, {3, 80}, {10, 11, 12}])
def test_bisection_finds_the_culprits_and_nothing_else(culprits):
    tried = []

    def fails(part):
        tried.append(len(part))
        return culprits <= set(part)

    assert smallest_failing(100, fails) == sorted(culprits)
    assert len(tried) < 130


def test_bisection_keeps_to_what_was_seen_to_fail():
    visits = []

    def fails(part):
        bad = len(part) % 3 == 0 and 7 in part
        if bad:
            visits.append(list(part))
        return bad

    assert smallest_failing(30, fails) in [*visits, list(range(30))]


def test_a_cut_has_only_its_own_weights_and_computes_the_same():
    model = small_net()
    x = np.random.default_rng(0).standard_normal((2, 4, 8)).astype(np.float32)
    values = tensor_values(model, [n for v in model.graph.node for n in v.output], {"x": x}) | {"x": x}
    part = [2, 3, 4]
    assert boundary(model, part) == (["sum", "x"], ["unit"])
    small = cut(model, part, values)
    onnx.checker.check_model(small, full_check=True)
    assert [t.name for t in small.graph.initializer] == ["eps"]
    actual = tensor_values(small, ["unit"], {"sum": values["sum"], "x": x})
    np.testing.assert_array_equal(actual["unit"], values["unit"])


def test_small_integers_at_the_border_become_constants():
    nodes = [node("Shape", ["x"], ["size"], 1, "m"), node("Reshape", ["y", "size"], ["z"], 2, "m")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, None]) for n in ("x", "y")],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [None, None])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = {"y": np.ones((3, 4), np.float32), "size": np.array([4, 3]), "z": np.ones((4, 3), np.float32)}
    small = cut(model, [1], values)
    assert [v.name for v in small.graph.input] == ["y"]
    assert [t.name for t in small.graph.initializer] == ["size"]


def test_reasons_are_the_same_without_names_and_numbers():
    a = "DeformConv 'c1' from backbone.a (net.py:12): No importer registered for op: DeformConv [4, 5]"
    b = "DeformConv 'c2' from head (net.py:99): No importer registered for op: DeformConv [1]"
    assert same_reason(a, b)
    assert not same_reason(a, "Col2Im 'c2' from head (net.py:99): No importer registered for op: Col2Im")
    assert not same_reason(a, "")


def test_a_wrong_rewrite_is_cut_to_its_nodes(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(eps=0.1))
    repro = make_repro(CheckRequest(path), tmp_path / "repro")
    assert (repro.kind, repro.nodes, repro.node, repro.source) == ("accuracy", 1, "/norm/Add", "net.py:13")
    names = {p.name for p in (tmp_path / "repro").iterdir()}
    assert names == {"repro.onnx", "inputs.npz", "expected.npz", "repro.reference.safetensors", "versions.json",
                     "README.md"}  # fmt: skip
    assert str(tmp_path) not in (tmp_path / "repro" / "README.md").read_text()
    report = check_model(CheckRequest(tmp_path / "repro" / "repro.onnx"))
    assert not report.passed
    assert json.loads((tmp_path / "repro" / "versions.json").read_text())["onnx"]


def test_a_run_that_fails_is_cut_to_the_node(tmp_path):
    path = write_pair(tmp_path, small_net(baked=32))
    repro = make_repro(CheckRequest(path), tmp_path / "out.zip")
    assert (repro.kind, repro.nodes, repro.node) == ("run", 1, "/head/Reshape")
    with zipfile.ZipFile(tmp_path / "out.zip") as packed:
        assert "repro/repro.onnx" in packed.namelist()
        packed.extractall(tmp_path)
    report = check_model(CheckRequest(tmp_path / "repro" / "repro.onnx"))
    assert not report.passed
    assert "Reshape" in report.comparisons[0].reason


def test_nothing_fails(tmp_path):
    path = write_pair(tmp_path)
    assert make_repro(CheckRequest(path), tmp_path / "repro", kind="accuracy") is None
    assert not (tmp_path / "repro").exists()


def refused_net(folder):
    """Convolutions with 4 MB of weights around an operator that TensorRT-RTX does not have."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((64, 64, 3, 3)).astype(np.float32) * 0.03, f"w{i}")
        for i in range(8)
    ]
    nodes = [node("Conv", [f"t{i}", f"w{i}"], [f"t{i + 1}"], 10 + i, f"conv{i}", pads=[1, 1, 1, 1]) for i in range(8)]
    nodes.insert(5, node("Det", ["t5"], ["d"], 50, "bad"))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, 64, 8, 8])],
        [
            helper.make_tensor_value_info("t8", TensorProto.FLOAT, [1, 64, 8, 8]),
            helper.make_tensor_value_info("d", TensorProto.FLOAT, [1, 64]),
        ],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save_model(model, folder / "net.onnx")
    x = rng.standard_normal((1, 64, 8, 8)).astype(np.float32)
    outputs = tensor_values(model, ["t8", "d"], {"t0": x})
    point, spec = SamplePoint("opt", ()), parse_tensor("t0:float32[1,64,8,8]")
    write_reference(
        folder / "net.reference.safetensors",
        ReferenceInfo((point,), (spec,), ("t8", "d"), ShapeSpace()),
        [ReferenceSample(point, {"t0": x}, outputs)],
    )
    return folder / "net.onnx"


def test_a_node_that_the_builder_refuses_is_cut_out_without_the_weights(tmp_path):
    pytest.importorskip("tensorrt_rtx")
    path = refused_net(tmp_path)
    repro = make_repro(CheckRequest(path), tmp_path / "repro", backend="tensorrt-rtx")
    assert (repro.kind, repro.nodes, repro.nodes_before, repro.source) == ("build", 1, 9, "net.py:50")
    assert repro.bytes < 1000 < repro.bytes_before
    assert "trtconv build repro.onnx" in (tmp_path / "repro" / "README.md").read_text()
    process = subprocess.run(
        [sys.executable, "-m", "trtconv", "build", "repro.onnx", "-o", "repro.engine", "--backend", "tensorrt-rtx"],
        cwd=tmp_path / "repro",
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        check=False,
    )
    assert process.returncode == 4
    assert "Det" in process.stderr


def test_a_model_without_an_onnx_file_is_refused(tmp_path):
    (tmp_path / "lonely.engine").write_bytes(b"x")
    with pytest.raises(InvalidRequestError, match="no ONNX file beside"):
        make_repro(CheckRequest(tmp_path / "lonely.engine"), tmp_path / "repro")
