"""Every TensorRT name that the backends use exists in every version, or is asked for before it is used.

`data/tensorrt_names.json` lists the names by version, as the real bindings have them. Names are found by walking the
syntax trees: `trt.X.Y` as written, and attributes of variables that hold TensorRT's objects by our naming.
"""

import ast
import json
from pathlib import Path

import pytest

import trtconv.backends
from trtconv.core.precision import TF32

DATA = json.loads((Path(__file__).parent / "data" / "tensorrt_names.json").read_text())
COLUMNS = DATA["columns"]
NAMES = {name: bits for bits, names in DATA["names"].items() for name in names}
# RTX 1.4 has another ABI and is refused.
SUPPORTED = [i for i, column in enumerate(COLUMNS) if column != "rtx1.4"]
FILES = sorted(Path(trtconv.backends.__file__).parent.rglob("*.py"))
# The variables and attributes that hold TensorRT's objects.
HOLDERS = {
    "builder": "Builder", "network": "INetworkDefinition", "parser": "OnnxParser", "config": "IBuilderConfig",
    "engine": "ICudaEngine", "_engine": "ICudaEngine", "loaded": "ICudaEngine", "context": "IExecutionContext",
    "runtime": "Runtime", "profile": "IOptimizationProfile", "registry": "IPluginRegistry",
    "inspector": "EngineInspector",
}  # fmt: skip
# In these files a variable of that name is a path, a context of CUDA, a mapping or our own record.
NOT_TENSORRT = {
    *((f"{f}.py", "engine") for f in ("engine_fit", "manifest", "plan_header", "select", "session", "backend")),
    *((f"{f}.py", "context") for f in ("driver_memory", "context")),
    ("engine_fit.py", "runtime"),
    ("engine_io.py", "profile"),
}
# Names that only some versions have, with the place that decides: a capability, or hasattr beside the use.
GUARDED = {
    "BuilderFlag.STRIP_PLAN": "capabilities.strip_plan",
    "BuilderFlag.OBEY_PRECISION_CONSTRAINTS": "not capabilities.strongly_typed",
    "BuilderFlag.PREFER_PRECISION_CONSTRAINTS": "not capabilities.strongly_typed",
    "ComputeCapability": "getattr in probe_capabilities",
    "IBuilderConfig.num_compute_capabilities": "capabilities.compute_capabilities",
    "IBuilderConfig.progress_monitor": "capabilities.progress",
    "IBuilderConfig.set_compute_capability": "capabilities.compute_capabilities",
    "IProgressMonitor": "capabilities.progress",
    "NetworkDefinitionCreationFlag.EXPLICIT_BATCH": "capabilities.explicit_batch",
    "NetworkDefinitionCreationFlag.STRONGLY_TYPED": "capabilities.strongly_typed_flag",
    "OnnxParser.supports_model_v2": "hasattr",
    "PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": "capabilities.generation",
    "PreviewFeature.FASTER_DYNAMIC_SHAPES_0805": "capabilities.generation",
    "PreviewFeature.PROFILE_SHARING_0806": "capabilities.generation",
    "ICudaEngine.is_debug_tensor": "hasattr in session.watched",
    "IDebugListener": "hasattr(engine, is_debug_tensor) in session.watched",
    "IExecutionContext.set_debug_listener": "hasattr(engine, is_debug_tensor) in session.watched",
    "IExecutionContext.set_tensor_debug_state": "hasattr(engine, is_debug_tensor) in session.watched",
    "INetworkDefinition.mark_debug": "capabilities.debug_tensors",
    "IPluginRegistry.all_creators": "hasattr",
    "IPluginRegistry.plugin_creator_list": "where all_creators is not",
    "init_libnvinfer_plugins": "hasattr",
}


def dotted(node: ast.AST) -> list[str]:
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return [node.id, *reversed(words)] if isinstance(node, ast.Name) else []


def used_names(tree: ast.AST, file: str) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        words = dotted(node) if isinstance(node, ast.Attribute) else []
        if not words:
            continue
        if "trt" in words[:2] or "_trt" in words[:2]:
            rest = words[(words.index("trt") if "trt" in words else words.index("_trt")) + 1 :]
            if rest and not rest[0].startswith("__"):
                names.add(".".join(rest[:2]) if f"{rest[0]}.{rest[1] if len(rest) > 1 else ''}" in NAMES else rest[0])
                if len(rest) > 1 and not rest[1].startswith("__"):
                    names.add(".".join(rest[:2]))
            continue
        if (file, words[-2]) in NOT_TENSORRT:
            continue
        if len(words) >= 2 and words[-2] in HOLDERS and not words[-1].startswith("_"):
            names.add(f"{HOLDERS[words[-2]]}.{words[-1]}")
    return names


USED = {(path.name, name) for path in FILES for name in used_names(ast.parse(path.read_text()), path.name)}
# configuration.py takes it by name from the table of precisions; the others it asks `capabilities.precision_flags` for.
USED.add(("configuration.py", f"BuilderFlag.{TF32.flag}"))


def in_every_version(name: str) -> bool:
    return name in NAMES and all(NAMES[name][i] == "1" for i in SUPPORTED)


def test_the_walk_finds_what_is_used():
    names = {name for _, name in USED}
    assert {"Builder", "BuilderFlag.TF32", "IBuilderConfig.set_memory_pool_limit", "OnnxParser.num_errors",
            "IExecutionContext.set_tensor_address", "ICudaEngine.get_tensor_profile_shape"} <= names  # fmt: skip
    assert len(names) > 50


@pytest.mark.parametrize(("file", "name"), sorted(USED))
def test_the_name_exists_wherever_it_is_used(file, name):
    if in_every_version(name):
        return
    assert name in NAMES, f"{file}: no version has {name}"
    have = [COLUMNS[i] for i in SUPPORTED if NAMES[name][i] == "1"]
    assert name in GUARDED, f"{file}: only {have} have {name}, and nothing says what asks for it first"
    assert have
    if GUARDED[name] == "hasattr":
        text = next(p for p in FILES if p.name == file).read_text()
        last = name.rsplit(".", 1)[-1]
        assert f'"{last}")' in text or f"'{last}')" in text, f"{file} uses {name} without hasattr"


@pytest.mark.parametrize("name", ["REFIT", "STRIP_PLAN", "VERSION_COMPATIBLE", "SPARSE_WEIGHTS", "TF32"])
def test_flags_that_are_looked_up_by_name(name):
    assert f"BuilderFlag.{name}" in NAMES


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("BuilderFlag.FP16", {"trt86", "trt100", "trt1016"}),
        ("PreviewFeature.FASTER_DYNAMIC_SHAPES_0805", {"trt86"}),
        ("IBuilderConfig.set_compute_capability", {"rtx1.5", "rtx1.6", "rtx1.7"}),
        ("IBuilderConfig.progress_monitor", {"trt100", "trt1016", "trt110", "trt114", "rtx1.5", "rtx1.6", "rtx1.7"}),
        ("PreviewFeature.PROFILE_SHARING_0806", {"trt86", "trt100", "trt1016"}),
    ],
)
def test_what_the_capabilities_stand_for(name, versions):
    assert {COLUMNS[i] for i in SUPPORTED if NAMES[name][i] == "1"} == versions


def test_methods_that_tensorrt_calls_have_the_names_that_it_calls():
    expected = {
        "ILogger": ["log"],
        "IProfiler": ["report_layer_time"],
        "IProgressMonitor": ["phase_start", "step_complete", "phase_finish"],
    }
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [dotted(b)[-1] for b in node.bases if isinstance(b, ast.Attribute) and dotted(b)]
                methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
                for base in bases:
                    assert set(expected.get(base, [])) <= methods, f"{path.name}: {node.name}"
