"""What a user can get wrong about the module and its weights; each ends in one message that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, TrtconvError
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module, require_named

NET = """
class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

def make_net(width: int = 8):
    return Net(width)

def broken():
    return Net("wide")

def nothing():
    pass

def needs(width):
    return Net(width)

def on_meta():
    with torch.device("meta"):
        return Net()
"""


def load(path: Path, factory: str = "make_net", **options: object) -> torch.nn.Module:
    return load_module(ModuleSource(f"{path.name}:{factory}", base=path.parent, **options))


def test_same_seed_gives_the_same_weights(write_module):
    path = write_module(NET)
    first, second, other = load(path), load(path), load(path, seed=1)
    assert torch.equal(first.first.weight, second.first.weight)
    assert not torch.equal(first.first.weight, other.first.weight)


def test_arguments_reach_the_factory(write_module):
    assert load(write_module(NET), args=(("width", 3),)).first.out_features == 3


def test_package_form(write_module):
    path = write_module(NET, "net_of_a_package.py")
    source = ModuleSource("net_of_a_package:make_net", base=path.parent)
    assert load_module(source).first.out_features == 8


@pytest.mark.parametrize(
    ("factory", "args", "words"),
    [
        ("make_nett", (), "has no factory 'make_nett'. Did you mean 'make_net'?"),
        ("make_net", (("widht", 3),), "has no parameter 'widht'. Did you mean 'width'?"),
        ("needs", (), "needs a value for 'width'"),
        ("nothing", (), "returned None, not an nn.Module"),
    ],
)
def test_requests_that_do_not_fit(write_module, factory, args, words):
    with pytest.raises(InvalidRequestError) as caught:
        load(write_module(NET), factory, args=args)
    assert words in caught.value.message
    assert caught.value.hint


def test_factory_that_raises_names_the_users_line(write_module):
    path = write_module(NET)
    with pytest.raises(TrtconvError) as caught:
        load(path, "broken")
    line = path.read_text().splitlines().index("        self.first = nn.Linear(4, width)") + 1
    assert caught.value.where == f"net.py:{line}"
    assert "TypeError" in caught.value.message


def test_syntax_error_names_its_line(write_module):
    with pytest.raises(TrtconvError) as caught:
        load(write_module("def make_net(:\n    pass\n"))
    assert caught.value.where == "net.py:5"


def test_missing_file_and_missing_package(tmp_path, write_module):
    with pytest.raises(InvalidRequestError, match="there is no module file"):
        load(tmp_path / "none.py")
    with pytest.raises(InvalidRequestError, match="no Python module 'no_such_package'"):
        load_module(ModuleSource("no_such_package:make", base=tmp_path))
    with pytest.raises(MissingDependencyError, match="needs the Python module 'no_such_dependency'"):
        load(write_module("import no_such_dependency\n", "other.py"))


LAZY = """
def make_net():
    try:
        {line}
    except Exception as error:
        raise ModuleNotFoundError("Could not import module 'Net'.") from error
"""


def test_a_package_that_imports_lazily_is_asked_for_the_cause(write_module):
    with pytest.raises(MissingDependencyError, match="needs the Python module 'no_such_dependency'"):
        load(write_module(LAZY.format(line="import no_such_dependency")))
    with pytest.raises(TrtconvError, match=r"raised ValueError: no$"):
        load(write_module("def make_net():\n    error = ValueError('no')\n    raise error from error\n", "own.py"))
    with pytest.raises(TrtconvError) as caught:
        load(write_module(LAZY.format(line="raise RuntimeError('operator nms does not exist')"), "other.py"))
    assert caught.value.message.endswith("module 'Net'., caused by RuntimeError: operator nms does not exist")


def test_a_file_that_is_no_module(tmp_path):
    (tmp_path / "model.textproto").write_text("ir_version: 9")
    with pytest.raises(InvalidRequestError, match=r"'model\.textproto' is a file, and neither Python") as caught:
        require_named("model.textproto", tmp_path, "factory")
    assert "model.onnx" in caught.value.hint


def test_spec_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidRequestError, match=r"cannot read 'net\.py'"):
        load_module(ModuleSource("net.py", base=tmp_path))


def test_a_file_without_a_factory_names_those_that_it_has(write_module):
    path = write_module("def scaled(x):\n    return x\n\nclass Net(nn.Module):\n    pass\n\n_hidden = 1\n")
    with pytest.raises(InvalidRequestError, match="is a file, and no factory of it is named") as caught:
        load_module(ModuleSource("net.py", base=path.parent))
    assert caught.value.hint == "write net.py:Net; it also has: scaled"


def test_weights_are_loaded_from_both_formats(write_module, tmp_path):
    from safetensors.torch import save_file

    path = write_module(NET)
    state = {k: v + 1 for k, v in load(path).state_dict().items()}
    save_file(state, tmp_path / "w.safetensors")
    torch.save(state, tmp_path / "w.pt")
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "wrapped.pt")
    for name in ("w.safetensors", "w.pt", "wrapped.pt"):
        loaded = load(path, weights=Path(name))
        assert all(torch.equal(v, state[k]) for k, v in loaded.state_dict().items()), name


def test_missing_and_extra_keys_are_listed(write_module, tmp_path):
    path = write_module(NET)
    state = dict(load(path).state_dict())
    state["head.weight"] = state.pop("second.weight")
    torch.save(state, tmp_path / "w.pt")
    with pytest.raises(InvalidRequestError) as caught:
        load(path, weights=Path("w.pt"))
    assert caught.value.details == ("missing: second.weight", "extra: head.weight")
    assert "1 keys are missing, 1 are extra" in caught.value.message


def test_weights_of_another_width(write_module, tmp_path):
    path = write_module(NET)
    torch.save(load(path, args=(("width", 5),)).state_dict(), tmp_path / "w.pt")
    with pytest.raises(InvalidRequestError, match="another shape") as caught:
        load(path, weights=Path("w.pt"))
    assert "first.weight: file [5, 4], module [8, 4]" in caught.value.details


def test_data_parallel_keys_get_their_own_hint(write_module, tmp_path):
    path = write_module(NET)
    torch.save({f"module.{k}": v for k, v in load(path).state_dict().items()}, tmp_path / "w.pt")
    with pytest.raises(InvalidRequestError) as caught:
        load(path, weights=Path("w.pt"))
    assert "DataParallel" in (caught.value.hint or "")


class Payload:
    """Pickles to a call of os.mkdir: loading it would leave a trace on the disk."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        import os

        return os.mkdir, (self.path,)


def test_weights_that_carry_code_are_refused_and_not_run(write_module, tmp_path):
    mark = tmp_path / "was_run"
    torch.save({"first.weight": Payload(str(mark))}, tmp_path / "w.pt")
    with pytest.raises(InvalidRequestError, match="could run code"):
        load(write_module(NET), weights=Path("w.pt"))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_weights_file_that_is_none(write_module, tmp_path, name):
    (tmp_path / name).write_bytes(b"no weights at all")
    with pytest.raises(InvalidRequestError):
        load(write_module(NET), weights=Path(name))


def test_tied_weights_may_be_stored_once(write_module, tmp_path):
    from safetensors.torch import save_file

    path = write_module(
        "class Tied(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)\n        self.b.weight = self.a.weight\n"
        "def make_net():\n    return Tied()\n"
    )
    state = {k: v.clone() + 1 for k, v in load(path).state_dict().items() if k != "b.weight"}
    save_file(state, tmp_path / "w.safetensors")
    loaded = load(path, weights=Path("w.safetensors"))
    assert torch.equal(loaded.b.weight, state["a.weight"])
    assert loaded.b.weight is loaded.a.weight


def test_exported_program_that_carries_code_is_refused_and_not_run(tmp_path):
    import io
    import zipfile

    mark, plain, evil = tmp_path / "was_run", tmp_path / "plain.pt2", tmp_path / "evil.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(4, 4), (torch.zeros(2, 4),)), plain)
    payload = io.BytesIO()
    torch.save(Payload(str(mark)), payload)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(evil, "w") as target:
        for item in source.infolist():
            swap = "sample_inputs" in item.filename
            target.writestr(item.filename.replace("plain/", "evil/"), payload.getvalue() if swap else source.read(item))
    assert load_module(ModuleSource("plain.pt2", base=tmp_path)) is not None
    with pytest.raises(InvalidRequestError, match="could run code"):
        load_module(ModuleSource("evil.pt2", base=tmp_path))
    assert not mark.exists()


def test_a_module_on_the_meta_device_is_refused_by_name(write_module):
    with pytest.raises(InvalidRequestError, match=r"'first\.weight' and 3 more lie on torch's meta device"):
        load(write_module(NET), "on_meta")


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("false", False), ("None", None), ("(1, 2)", (1, 2)), ("'a b'", "a b"), ("no", "no"), ("(", "(")],
)
def test_arguments_are_read_as_json_and_as_python_writes_them(text, value):
    from trtconv.core.requests.module_source import _factory_argument

    assert _factory_argument(f"flag={text}") == ("flag", value)


def test_a_text_for_what_is_true_or_false_is_refused(write_module):
    path = write_module("def make_net(flag=False):\n    return nn.Linear(2, 5 if flag else 3)\n")
    with pytest.raises(InvalidRequestError, match=r"'flag' of the factory .* is true or false, not 'no'"):
        load_module(ModuleSource("net.py:make_net", (("flag", "no"),), base=path.parent))
