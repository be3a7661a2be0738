"""What trtconv never does, whatever a file holds: unpickle it, load a library that nobody named, leave its folder."""

import ast
import os
import subprocess
from pathlib import Path

import pytest

from trtconv.core.errors import InvalidRequestError, UntrustedError
from trtconv.core.files.python_child import run_code, run_module

PACKAGE = Path(__file__).parents[1] / "trtconv"
SOURCES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
# What unpickles, or runs text as code. The builder child gets its work by pickle, in a folder of mode 0700 that both
# own, and answers in JSON; exported_program and weights only name the exception that torch raises.
PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
MAY_PICKLE = {"backends/tensorrt/builder/isolated.py"}
MAY_NAME_PICKLE = {"export/module/exported_program.py", "export/module/weights.py"}
CODE = {"eval", "exec", "compile", "__import__"}
SHELL = {"system", "popen", "execv", "execve", "execvp", "spawnv"}

# Becomes the command of a job, a list of words without a shell, once it is tied to the life of its worker.
MAY_BECOME = {"sweep/workers/child.py"}


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_is_unpickled_or_run(path):
    tree, name = SOURCES[path], name_of(path)
    imported = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    if name not in MAY_PICKLE | MAY_NAME_PICKLE:
        assert not imported & PICKLES
    for call, function in calls(tree):
        words = {k.arg: k.value for k in call.keywords}
        assert "allow_pickle" not in words or ast.unparse(words["allow_pickle"]) == "False", name
        assert "weights_only" not in words or ast.unparse(words["weights_only"]) == "True", name
        assert "shell" not in words or ast.unparse(words["shell"]) == "False", name
        assert function not in CODE, f"{name} calls {function}"
        if function.startswith("os.") and name not in MAY_BECOME:
            assert function.removeprefix("os.") not in SHELL, name
        if function in ("torch.load", "np.load", "numpy.load") or function.endswith((".unsafe_load", "read_pickle")):
            assert "weights_only" in words or "allow_pickle" in words, f"{name} calls {function}"
        if function.startswith("pickle.") and name in MAY_NAME_PICKLE:
            assert function == "pickle.UnpicklingError", f"{name} calls {function}"


def test_what_a_child_answers_is_not_unpickled():
    """The child parses a stranger's model: it may be somebody else's by the time it answers."""
    (path,) = (p for p in SOURCES if name_of(p) in MAY_PICKLE)
    unpickles = {
        function.name
        for function in ast.walk(SOURCES[path])
        if isinstance(function, ast.FunctionDef)
        for _, name in calls(function)
        if name in ("pickle.load", "pickle.loads", "pickle.Unpickler")
    }
    assert unpickles == {"_answer"}, "the function of the child that takes its work"


def test_a_child_imports_nothing_from_the_current_folder(tmp_path):
    for name in ("tensorrt", "tensorrt_rtx", "trtconv", "runpy", "random", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(PACKAGE.parent)}
    for command in (run_code("import random, json, runpy"), (*run_module("trtconv"), "version")):
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "ran").exists()


def test_every_child_is_started_so():
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.List, ast.Tuple)) and path.name != "python_child.py":
                words = [ast.unparse(e) for e in node.elts]
                assert not ("sys.executable" in words and {"'-m'", "'-c'"} & set(words)), path


def test_plugins_are_loaded_by_absolute_path_alone():
    """A bare name would be looked up in LD_LIBRARY_PATH and the working directory by the linker."""
    loads = {
        name_of(path): function
        for path, tree in SOURCES.items()
        for call, function in calls(tree)
        if function.endswith((".load_library", "cdll.LoadLibrary"))
    }
    assert set(loads) == {"backends/tensorrt/plugin_loading.py"}
    source = (PACKAGE / "backends/tensorrt/plugin_loading.py").read_text()
    assert 'require_file(library, "plugin library").resolve()' in source


@pytest.mark.parametrize("options", [{"version_compatible": True}, {"version_compatible": "on"}])
def test_code_of_the_host_in_an_engine_is_off_unless_it_is_named(tmp_path, options):
    from tests.core.trust.sets import write_set
    from trtconv.backends.tensorrt.engine_fit import require_named_code
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.core.trust.trust import NO_CODE, EngineCode

    engine = write_set(tmp_path, options=options)
    manifest = read_engine_manifest(engine)
    with pytest.raises(UntrustedError, match="carries code for the CPU"):
        require_named_code(engine, manifest, NO_CODE)
    with pytest.raises(UntrustedError):
        require_named_code(engine, manifest, EngineCode(plugins=True))
    require_named_code(engine, manifest, EngineCode(host=True))


@pytest.mark.parametrize("way", ["load", "refit"])
@pytest.mark.parametrize("carried", [{"options": {"version_compatible": True}}, {"plugin_kernels": {"L2Norm": {}}}])
def test_no_way_into_tensorrt_goes_past_the_code_that_was_named(tmp_path, monkeypatch, way, carried):
    """Refused before a GPU is looked for, so before TensorRT is asked at all; with the name, the GPU is what lacks."""
    from tests.core.trust.sets import write_set
    from trtconv.backends.protocol import Capabilities
    from trtconv.backends.tensorrt import backend
    from trtconv.core.errors import MissingDependencyError
    from trtconv.core.trust.trust import EngineCode

    def no_gpu(what):
        raise MissingDependencyError(what)

    engine = write_set(tmp_path, **carried)
    monkeypatch.setattr(backend, "require_cuda", no_gpu)
    installed = Capabilities("tensorrt", "11.1.0", 11, True, True, False)
    monkeypatch.setattr(backend.TensorRTBackend, "capabilities", lambda self: installed)
    opened = getattr(backend.TensorRTBackend("tensorrt"), way)
    weights = ({},) if way == "refit" else ()
    with pytest.raises(UntrustedError, match="would run when it is loaded"):
        opened(engine, *weights)
    with pytest.raises(MissingDependencyError):
        opened(engine, *weights, code=EngineCode(host=True, plugins=True))


def test_kernels_in_an_engine_are_off_unless_they_are_named(tmp_path):
    from tests.core.trust.sets import write_set
    from trtconv.backends.tensorrt.engine_fit import require_named_code
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.core.trust.trust import NO_CODE, EngineCode

    engine = write_set(tmp_path, plugin_kernels={"L2Norm": {"architecture": "9.0", "ptx_sha256": "0" * 64}})
    manifest = read_engine_manifest(engine)
    with pytest.raises(UntrustedError, match="carries kernels of plugins"):
        require_named_code(engine, manifest, NO_CODE)
    require_named_code(engine, manifest, EngineCode(plugins=True))


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "link", "folder/../../secret", "..\\secret", "", "."])
def test_weights_lie_in_the_folder_of_their_model(tmp_path, location):
    import onnx

    from tests.backends.onnx_models import conv_net
    from trtconv.core.model.file import load_model

    (tmp_path / "secret").write_bytes(bytes(10_000))
    folder = tmp_path / "model"
    path = conv_net(folder / "m.onnx", external=True)
    (folder / "link").symlink_to(tmp_path / "secret")
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidRequestError):
        load_model(path, weights=True)
