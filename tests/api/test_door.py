"""`import trtconv` and what it shows."""

import pydoc

import pytest

import trtconv
from tests.test_architecture import HEAVY, loaded_by
from trtconv.core import errors


def test_the_import_is_light():
    assert not loaded_by("import trtconv; trtconv.convert; trtconv.Conversion; trtconv.Verdict") & HEAVY


def test_help_shows_the_door():
    text = pydoc.plain(pydoc.render_doc(trtconv))
    for name in ("convert(", "check(", "load(", "assert_equal(", "class Verdict", "class Conversion", "TrtconvError"):
        assert name in text


def test_every_name_of_the_door_is_there():
    assert set(trtconv.__all__) <= set(dir(trtconv))
    assert all(callable(getattr(trtconv, name)) for name in trtconv.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trtconv.nothing


def test_every_error_is_of_the_door():
    classes = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.TrtconvError)}
    assert classes == {n for n in trtconv.__all__ if n.endswith("Error")}


def test_check_is_a_call_and_a_package(tmp_path):
    import trtconv.check.room

    assert trtconv.check.room.check_model is trtconv.check.check_model
    with pytest.raises(trtconv.InvalidRequestError, match="there is no model"):
        trtconv.check(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.check(None), "must be the path of a file, got NoneType"),
        (lambda t: t.check(""), "got an empty text"),
        (lambda t: t.load(3), "must be the path of a file, got int"),
        (lambda t: t.assert_equal("model.onnx", object()), "must be the path of a file, got object"),
        (lambda t: t.sweep(None), "must be the path of a file"),
        (lambda t: t.convert("net.py:make", dynamic=["N=1:2:4"]), "dynamic must be a dictionary"),
        (lambda t: t.check("model.onnx", progress=3), "progress must have the methods"),
    ],
)
def test_arguments_of_another_type_end_in_one_error(call, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(trtconv.InvalidRequestError, match=text):
        call(trtconv)
    assert not list(tmp_path.iterdir())
