"""What a hostile graph may cost: results are measured before they are computed, and SIGTERM always ends."""

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from trtconv.core.limits import own_bytes
from trtconv.core.model.inference import infer_propagated
from trtconv.rewrite.graph.concrete import run_node
from trtconv.rewrite.graph.result_size import result_elements
from trtconv.rewrite.patterns.einsum_plan import plan_of

ROOT = Path(__file__).parents[2]
BILLION = 10**9


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Range", [np.int64(0), np.int64(BILLION), np.int64(1)]),
        ("Range", [np.float32(0), np.float32(1), np.float32(1e-30)]),
        ("ConstantOfShape", [ints(BILLION, 4)]),
        ("Expand", [ints(1), ints(BILLION)]),
        ("Tile", [ints(1, 2), ints(BILLION)]),
        ("Pad", [ints(1, 2), ints(0, BILLION)]),
        ("Resize", [np.ones((1, 1), np.float32), None, None, ints(BILLION, 1)]),
        ("OneHot", [ints(1), ints(BILLION), ints(0, 1)]),
        ("Add", [np.ones((4096, 1)), np.ones((1, 4096))]),
    ],
)
def test_a_large_result_is_never_computed(op, inputs):
    names = [f"i{n}" if a is not None else "" for n, a in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"])
    tracemalloc.start()
    with pytest.raises(MemoryError):
        run_node(node, [None if a is None else np.asarray(a) for a in inputs], 18)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


@pytest.mark.parametrize(
    ("op", "inputs", "size"),
    [("Range", [2, 8, 2], 3), ("Add", [ints(1, 2), ints(3)], 2), ("Concat", [ints(1), ints(2, 3)], 3),
     ("ConstantOfShape", [ints(3, 4)], 12), ("Expand", [ints(1), ints(5)], 5), ("Tile", [ints(1, 2), ints(3)], 6)],
)  # fmt: skip
def test_the_bound_holds_what_is_computed(op, inputs, size):
    arrays = [np.asarray(i, np.int64) for i in inputs]
    node = helper.make_node(op, [f"i{n}" for n in range(len(arrays))], ["y"], **({"axis": 0} if op == "Concat" else {}))
    assert result_elements(node, arrays) >= size
    assert np.asarray(run_node(node, arrays, 18)[0]).size == size


@pytest.mark.parametrize("equation", ["." * 3000 + "->...", "......->...", "..->..", "a...b...->a", "a-,b->c", "a1->a"])
def test_an_equation_that_is_none(equation):
    assert plan_of(equation, [4]) is None


def model_of(node, shape, constants=()):
    dtype = TensorProto.FLOAT if node.op_type == "Einsum" else TensorProto.INT64
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
        [numpy_helper.from_array(np.asarray(v, np.int64), n) for n, v in constants],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize("case", ["einsum", "range"])
def test_rewrite_of_a_hostile_graph_ends(tmp_path, case):
    if case == "einsum":
        model = model_of(helper.make_node("Einsum", ["x"], ["y"], equation="." * 3000 + "->..."), [2, 3])
    else:
        node = helper.make_node("Range", ["a", "b", "c"], ["y"])
        model = model_of(node, [2], [("a", 0), ("b", BILLION), ("c", 1)])
    save(model, tmp_path / "m.onnx")
    code = (
        "import resource, sys\nfrom trtconv.cli.main import run\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\nrun(sys.argv[1:])\n"
    )
    words = ["rewrite", str(tmp_path / "m.onnx"), "--target", "tensorrt==8.6", "-o", str(tmp_path / "n.onnx")]
    process = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert process.returncode in (0, 2, 4), process.stderr
    assert "internal error" not in process.stderr


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_a_huge_vector_is_not_propagated_as_a_shape(op):
    """onnx would take over 100 bytes for each of its elements."""
    bounds = [numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in (("a", 0), ("b", 3e7), ("c", 1))]
    graph = helper.make_graph(
        [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node(op, ["x", "r"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        bounds,
    )
    before = own_bytes()
    inferred = infer_propagated(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]))
    assert own_bytes() - before < 1 << 28
    assert inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 30_000_000


def test_values_of_shapes_are_propagated_as_before():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Add", ["s", "one"], ["t"]),
        helper.make_node("Expand", ["v", "t"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(ints(1, 1), "one"), numpy_helper.from_array(np.float32([0]), "v")],
    )
    inferred = infer_propagated(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]))
    assert [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim] == [4, 5]


@pytest.mark.parametrize("stuck", ["lock(mutex)", "futures.ThreadPoolExecutor().submit(time.sleep, 60).result()"])
def test_sigterm_ends_a_native_call_and_a_thread(stuck):
    code = (
        "import ctypes, time\nfrom concurrent import futures\nfrom trtconv.cli.termination import terminable\n"
        "lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)\n"
        f"with terminable(0.5):\n    print('ready', flush=True)\n    {stuck}\n    {stuck}\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        child.terminate()
        assert child.wait(timeout=50) == 143
