"""The house on disk is the house in the design: who may import whom, and how large a room's files get."""

import ast
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "trtconv"
FILES = sorted(PACKAGE.rglob("*.py"))
# The 350 lines hold for tests and benchmarks too.
FOLDERS = (PACKAGE, ROOT / "tests", ROOT / "benchmarks", ROOT / "networks")
ALL_FILES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))

# Part -> the parts of trtconv that it may import besides itself.
ROOMS = ("export", "rewrite", "build", "check")
BELOW_ROOMS = {"backends", "plugins", "proof", "core"}
BELOW_ONE_MODEL = {"originals", "foreign", *ROOMS, *BELOW_ROOMS}
BELOW_DOORS = {"tune", "sweep", "frontend", "pipeline", *BELOW_ONE_MODEL}
ALLOWED = {
    "core": set(),
    "proof": {"core"},
    "backends": {"proof", "core"},
    "plugins": {"proof", "core"},
    **dict.fromkeys((*ROOMS, "foreign"), BELOW_ROOMS),
    # What the rooms prove equal to, whichever of the two it is.
    "originals": {"foreign", "export", "proof", "core"},
    "pipeline": BELOW_ONE_MODEL,
    # Above the rooms: it runs trtconv's commands as processes and reads what they wrote.
    "sweep": {"check", "backends", "core"},
    "heal": {"rewrite", "build", "check", *BELOW_ROOMS},
    "tune": BELOW_ONE_MODEL,
    "frontend": {"tune", "pipeline", *BELOW_ONE_MODEL},
    "api": BELOW_DOORS,
    "pytest_plugin": {"api", "check", "core"},
    "cli": {"heal", *BELOW_DOORS},
}
# Package -> the parts that may import it at all.
OWNERS = {
    "onnx_graphsurgeon": {"rewrite"},
    "tensorrt": {"backends"},
    "tensorrt_rtx": {"backends"},
    "pycuda": {"backends"},
    "torch": {"export", "backends"},
    "onnxscript": {"export"},
    "click": {"cli"},
    "ray": {"sweep"},
    "fsspec": {"sweep"},
}
# What `import trtconv.core.x` or `import trtconv.cli.x` must not load.
HEAVY = {"torch", "onnx", "onnxruntime", "onnx_graphsurgeon", "onnxscript", "onnx_ir", "tensorrt", "tensorrt_rtx",
         "pycuda", "numpy", "pydantic", "jinja2", "rich", "safetensors", "ray"}  # fmt: skip

# What no variable, parameter, function or class is called.
PARTICIPLES = {"found", "made", "kept", "place", "got", "given", "done", "wanted", "want", "seen", "known", "told",
               "said", "asked", "taken", "drawn"}  # fmt: skip

NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.add(node.module or "")
    return names


def top_level(tree: ast.Module) -> set[str]:
    plain = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return {name.split(".")[0] for node in plain for name in imported(ast.Module([node], []))}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    part = part_of(path)
    if part in ("__init__", "__main__"):
        return
    for name in imported(ast.parse(path.read_text())):
        words = name.split(".")
        if words[0] == "trtconv" and len(words) > 1 and words[1] != part:
            assert words[1] in ALLOWED[part], f"{part} imports {name}"
        owners = OWNERS.get(words[0])
        assert owners is None or part in owners, f"{part} imports {words[0]}"


@pytest.mark.parametrize("part", ["core", "cli", "frontend", "api", "pytest_plugin", "sweep"])
def test_heavy_packages_are_imported_in_bodies_only(part):
    for path in FILES:
        if part_of(path) == part:
            assert not top_level(ast.parse(path.read_text())) & HEAVY, path


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 350


def flat_folders(root: Path, paths: list[Path]) -> dict[str, int]:
    """Folders with more than seventeen of these files at one level; `__init__.py` and JSON, which is data, stay out."""
    written = [p for p in paths if p.name != "__init__.py" and p.suffix not in (".json", ".jsonl", ".pyc")]
    folders = Counter(path.parent for path in written)
    return {str(folder.relative_to(root)): count for folder, count in folders.items() if count > 17}


def test_no_folder_is_a_flat_list():
    """About fifteen files at one level, in tests and benchmarks too."""
    paths = [path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]
    assert not flat_folders(ROOT, paths)


def test_a_flat_list_is_seen(tmp_path):
    """A folder of records stays: nobody reads it from top to bottom."""
    tests = [tmp_path / "cli" / f"test_{i}.py" for i in range(18)]
    records = [tmp_path / "results" / f"{i}.json" for i in range(40)]
    assert flat_folders(tmp_path, [*tests, *records, tmp_path / "cli" / "__init__.py"]) == {"cli": 18}
    assert not flat_folders(tmp_path, tests[:17])


def test_class_names_are_unique():
    """A name that stands for two things is looked up twice by every reader."""
    names = Counter(
        node.name for path in FILES for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]


def test_no_name_that_says_nothing():
    vague = {"utils", "util", "helpers", "helper", "misc", "manager", "common"}
    assert not [p for p in FILES if p.stem in vague or p.parent.name in vague]


def bound_names(tree: ast.AST) -> list[tuple[str, int]]:
    """Every name that an assignment, a loop, a with, a parameter, a function or a class binds, with its line."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.id, node.lineno))
        elif isinstance(node, ast.arg):
            names.append((node.arg, node.lineno))
        elif isinstance(node, NAMED) and node.name:
            names.append((node.name, node.lineno))
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_names_say_what_they_hold(path):
    """A participle says that something happened to a value, not what the value is."""
    assert not [(n, line) for n, line in bound_names(ast.parse(path.read_text())) if n in PARTICIPLES]


@pytest.mark.parametrize(
    "source",
    ["found = 1", "for found in x: pass", "with x as found: pass", "def found(): pass", "def f(found): pass",
     "def f(*, found=1): pass", "lambda found: 1", "[1 for found in x]", "(found := 1)", "a, (found, b) = x",
     "class found: pass", "try: pass\nexcept E as found: pass", "def f(**found): pass", "found: int = 1"],
)  # fmt: skip
def test_every_binding_of_a_participle_is_seen(source):
    assert [name for name, _ in bound_names(ast.parse(source)) if name in PARTICIPLES] == ["found"]


def loaded_by(code: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print(*sorted(m.split('.')[0] for m in sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(process.stdout.split())


def test_help_loads_no_heavy_package():
    code = "from trtconv.cli.main import cli\ntry:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & HEAVY


@pytest.mark.parametrize("room", ["foreign", "rewrite", "build", "check"])
def test_rooms_load_without_torch(room):
    assert "torch" not in loaded_by(f"import trtconv.{room}")


def test_every_folder_of_tests_is_run(pytestconfig):
    """pytest leaves out folders called `build` of its own accord."""
    folders = {p.name for p in (ROOT / "tests").rglob("*") if p.is_dir() and p.name != "__pycache__"}
    left_out = pytestconfig.getini("norecursedirs")
    assert not {f for f in folders for pattern in left_out if fnmatch(f, pattern)}


def test_an_engine_is_deserialised_in_one_place():
    """Whatever reaches TensorRT passed `admit_engine`, which asks what code the engine carries."""
    words = ("deserialize_cuda_engine", "engine_host_code_allowed", "deserialize_engine_from_stream")
    uses = {
        (str(path.relative_to(PACKAGE)), node.attr)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in words
    }
    door = "backends/tensorrt/admission.py"
    assert uses == {(door, "deserialize_cuda_engine"), (door, "engine_host_code_allowed")}
    makers = [p for p in FILES if "AdmittedEngine(" in p.read_text()]
    assert [str(p.relative_to(PACKAGE)) for p in makers] == [door]
