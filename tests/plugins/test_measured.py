"""`--plugins auto`: by measurement, target and library, with a reason either way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from benchmarks.plugins import measurements
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.plugins import measured
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.measured import PluginTiming, judge, load_measurements
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.engine import plugin_choice

ROOT = Path(__file__).resolve().parents[2]
PAD = PluginTiming(
    "TrtconvReflectionPad", "float32", (1, 4, 8, 8), 4 * (256 + 400), 0.01, 0.05, "NVIDIA H200", "8.6.0", "2026-11-21",
    "results.json",
)  # fmt: skip


def test_the_nearest_of_the_same_type_and_generation_decides() -> None:
    slow = replace(PAD, bytes=100_000, native_ms=0.009)
    names = (PAD, slow, replace(PAD, dtype="float16", bytes=90_000), replace(PAD, tensorrt="10.1.0", bytes=90_000))
    small, large = (judge(names, PAD.op_type, "float32", b, 8) for b in (3000, 80_000))
    assert small.pays
    assert "5 times as fast" in small.reason
    assert "NVIDIA H200, TensorRT 8.6.0" in small.reason
    assert not large.pays
    assert "was not faster" in large.reason
    assert judge(names, PAD.op_type, "float16", 80_000, 8).pays
    assert judge(names, PAD.op_type, "bfloat16", 80_000, 8).pays
    assert judge(names, PAD.op_type, "float32", 80_000, 10).pays


def test_without_a_measurement_nothing_is_guessed() -> None:
    other = judge((PAD,), PAD.op_type, "float32", 3000, 11)
    assert not other.pays
    assert "for TensorRT 11; there are some for TensorRT 8 float32" in other.reason
    far = judge((PAD,), PAD.op_type, "float32", PAD.bytes * 9, 8)
    assert not far.pays
    assert "no measurement near" in far.reason
    assert not judge((), PAD.op_type, "float32", 3000, 8).pays


def test_a_gain_within_the_noise_does_not_pay() -> None:
    assert not judge((replace(PAD, native_ms=0.0104),), PAD.op_type, "float32", PAD.bytes, 8).pays
    assert judge((replace(PAD, native_ms=0.0106),), PAD.op_type, "float32", PAD.bytes, 8).pays


def test_of_two_as_near_the_less_favourable_decides() -> None:
    pair = (replace(PAD, bytes=1000), replace(PAD, bytes=4000, native_ms=0.005))
    assert not judge(pair, PAD.op_type, "float32", 2000, 8).pays
    assert not judge(pair[::-1], PAD.op_type, "float32", 2000, 8).pays


def test_the_shipped_measurements() -> None:
    """Made from the committed results by the script, and of plugins that exist."""
    committed = (ROOT / "trtconv" / "plugins" / measured.FILE_NAME).read_text()
    message = "run python -m benchmarks plugins.measurements"
    assert committed == measurements.text_of(measurements.default_files()), message
    assert {m.op_type for m in load_measurements()} <= {p.op_type for p in PLUGINS}
    norm = judge(load_measurements(), "TrtconvL2Norm", "float32", 2 * 4 * 512 * 38 * 38, 8)
    assert norm.pays
    assert "NVIDIA H200, TensorRT 8.6.0" in norm.reason
    assert all(m.plugin_ms > 0 and m.native_ms > 0 and m.bytes > 0 and m.gpu for m in load_measurements())


def test_the_script_reads_what_the_benchmark_writes(tmp_path: Path) -> None:
    row = {"case": "l2norm [16, 512, 64, 64]", "dtype": "float32", "bytes": 268435456}
    engines = {"plugin": {"ms": 0.07}, "native": {"ms": 0.19}}
    rows = [{**row, "engines": engines}, {**row, "dtype": "float16", "engines": {**engines, "plugin": {"error": []}}}]
    data = {"gpu": "NVIDIA H200", "tensorrt": "8.6.0", "date": "2026-11-21", "rows": rows}
    old = {**data, "date": "2026-11-01", "rows": [{**rows[0], "engines": {**engines, "plugin": {"ms": 1.0}}}]}
    for name, content in (("b.json", data), ("a.json", old)):
        (tmp_path / name).write_text(json.dumps(content))
    for order in (["a.json", "b.json"], ["b.json", "a.json"]):
        (path,) = json.loads(measurements.text_of([tmp_path / n for n in order]))["measurements"]
        timing = PluginTiming(**{**path, "shape": tuple(path["shape"])})
        assert (timing.op_type, timing.shape, timing.plugin_ms) == ("TrtconvL2Norm", (16, 512, 64, 64), 0.07)
        assert (timing.source, timing.plugin_form) == ("b.json", "engine")
    # The kernel alone stands in for an engine with the plugin, until there is one.
    alone = {**data, "date": "2026-12-01", "rows": [{**row, "kernel_ms": 0.05, "engines": {"native": {"ms": 0.19}}}]}
    (tmp_path / "c.json").write_text(json.dumps(alone))
    (path,) = json.loads(measurements.text_of([tmp_path / "c.json"]))["measurements"]
    timing = PluginTiming(**{**path, "shape": tuple(path["shape"])})
    assert "plugin's kernel alone 0.05 ms" in str(timing)
    (path,) = json.loads(measurements.text_of([tmp_path / "b.json", tmp_path / "c.json"]))["measurements"]
    assert (path["plugin_form"], path["plugin_ms"]) == ("engine", 0.07)


def padding(path: Path) -> Path:
    """Two reflection paddings: one of the input, one of a value whose sizes nothing but inference at opt tells."""
    model = onnx.parser.parse_model("""
      <ir_version: 9, opset_import: ["" : 17]>
      g (float[N,4,H,W] x) => (float[N,4,a,b] y)
      <int64[8] p = {0,0,1,1,0,0,1,1}, float[4] s = {1.0,1.0,0.5,0.5}> {
        q = Pad<mode="reflect">(x, p)
        h = Resize<mode="linear">(q, , s)
        y = Pad<mode="reflect">(h, p)
      }""")
    model.metadata_props.add(key="trtconv.space", value="N=1:1:2 H=4:8:64 W=4:8:64")
    model.metadata_props.add(key="trtconv.inputs", value="x:float32[N,4,H,W]")
    onnx.save(model, str(path))
    return path


def rewritten(folder: Path, **values: Any) -> tuple[Any, list[str]]:
    model = padding(folder / "model.onnx")
    values = {"target": "tensorrt==8.6", "plugins": "auto", **values}
    values["target"] = parse_target(values["target"])
    result = rewrite_model(
        RewriteRequest(model, folder / "out.onnx", only=("plugin-reflection-pad",), **values), SilentProgress()
    )
    return result, [n.op_type for n in onnx.load(str(folder / "out.onnx")).graph.node]


@pytest.fixture
def library(tmp_path: Path) -> tuple[Path, ...]:
    """A file that holds the plugin's name, as a library does; a rewrite never loads it."""
    path = tmp_path / "libplugins.so"
    path.write_bytes(b"\0TrtconvReflectionPad\0")
    return (path,)


@pytest.fixture(autouse=True)
def nothing_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))


def reasons(result: Any) -> list[str]:
    return [s.reason for s in result.skipped if s.rule == "plugin-reflection-pad"]


def measure(monkeypatch: pytest.MonkeyPatch, *known: PluginTiming) -> None:
    monkeypatch.setattr(plugin_choice, "load_measurements", lambda: known)


def test_auto_fires_where_it_was_faster(tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The second padding moves 4 * 4 * (5 * 5 + 7 * 7) bytes at opt, the first 4 * 4 * (8 * 8 + 10 * 10).
    measure(monkeypatch, replace(PAD, bytes=2624), replace(PAD, bytes=1184, native_ms=0.001))
    result, nodes = rewritten(tmp_path, plugin_libraries=library)
    assert nodes == ["TrtconvReflectionPad", "Resize", "Pad"]
    (entry,) = result.entries
    assert "2624 bytes" in entry.note
    (reason,) = reasons(result)
    assert "was not faster" in reason
    assert "1184 bytes" in reason
    assert "TensorRT 8.6.0" in reason


def test_auto_wants_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, PAD)
    result, nodes = rewritten(tmp_path)
    assert nodes == ["Pad", "Resize", "Pad"]
    assert all("no library with TrtconvReflectionPad for TensorRT 8" in r for r in reasons(result))
    other = tmp_path / "libother.so"
    other.write_bytes(b"\0TrtconvL2Norm\0")
    assert rewritten(tmp_path, plugin_libraries=(other,))[1] == ["Pad", "Resize", "Pad"]


def test_auto_wants_a_measurement_of_the_target(tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, PAD)
    result, nodes = rewritten(tmp_path, plugin_libraries=library, target="tensorrt==11")
    assert nodes == ["Pad", "Resize", "Pad"]
    assert all("for TensorRT 11" in r for r in reasons(result))


def test_auto_looks_at_the_precision_to_come(tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, PAD)
    result, nodes = rewritten(tmp_path, plugin_libraries=library, precision="fp16")
    assert "TrtconvReflectionPad" not in nodes
    assert all("in float16" in r for r in reasons(result))


def test_the_reason_stays_when_another_rule_takes_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model("""
      <ir_version: 9, opset_import: ["" : 17]>
      g (float[1,4,16,16] x) => (float[1,4,16,16] y) <float[4] s = {1,2,3,4}, float[4] b = {0,1,0,1}> {
        y = InstanceNormalization(x, s, b)
      }""")
    model.graph.node[0].name = "norm"
    onnx.save(model, str(tmp_path / "norm.onnx"))
    measure(monkeypatch, replace(PAD, op_type="TrtconvInstanceNorm"))
    request = RewriteRequest(tmp_path / "norm.onnx", tmp_path / "o.onnx", parse_target("tensorrt==8.6"), plugins="auto")
    result = rewrite_model(request, SilentProgress())
    assert "instance-norm" in [e.rule for e in result.entries], "the native form takes the node"
    (reason,) = (s.reason for s in result.skipped if (s.rule, s.node) == ("plugin-instance-norm", "norm"))
    assert "no library with TrtconvInstanceNorm" in reason


def test_auto_and_a_name_together(tmp_path: Path) -> None:
    assert rewritten(tmp_path, plugins="auto,TrtconvReflectionPad")[1].count("TrtconvReflectionPad") == 2
    assert rewritten(tmp_path, plugins="never")[1] == ["Pad", "Resize", "Pad"]


def test_adaptive_pooling_stays_a_node_only_where_it_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model("""
      <ir_version: 9, opset_import: ["" : 17, "trtconv" : 1]>
      g (float[1,4,16,16] x) => (float[1,4,3,3] y) { y = trtconv.TrtconvAdaptivePool<output_size=[3,3],mode=0>(x) }""")
    onnx.save(model, str(tmp_path / "pool.onnx"))
    library = tmp_path / "lib.so"
    library.write_bytes(b"\0TrtconvAdaptivePool\0")
    pool = replace(PAD, op_type="TrtconvAdaptivePool", bytes=16 * (256 + 9))
    for native_ms, stays in ((0.05, True), (0.005, False)):
        measure(monkeypatch, replace(pool, native_ms=native_ms))
        request = RewriteRequest(
            tmp_path / "pool.onnx",
            tmp_path / "out.onnx",
            parse_target("tensorrt==8.6"),
            plugins="auto",
            plugin_libraries=(library,),
            only=("adaptive-pool",),
        )
        rewrite_model(request, SilentProgress())
        nodes = [n.op_type for n in onnx.load(str(tmp_path / "out.onnx")).graph.node]
        assert ("TrtconvAdaptivePool" in nodes) == stays
