"""A run that fails says which files of an earlier one it leaves."""

import os

import pytest

from trtconv.core.errors import TrtconvError
from trtconv.core.files.earlier import telling_of_earlier


def test_what_was_there_and_was_not_written_is_told_once(tmp_path):
    model, engine, new = (tmp_path / n for n in ("model.onnx", "model.engine", "model.trt.onnx"))
    model.write_text("one")
    engine.write_text("two")

    def write_and_fail():
        new.write_text("three")
        raise TrtconvError("no", details=["first"])

    with pytest.raises(TrtconvError) as caught, telling_of_earlier([model, engine, new]), telling_of_earlier([model]):
        write_and_fail()
    assert caught.value.details == (
        "first",
        "left from an earlier run: model.onnx",
        "left from an earlier run: model.engine",
    )


def test_what_the_run_wrote_is_its_own(tmp_path):
    model = tmp_path / "model.onnx"
    model.write_text("one")
    os.utime(model, (1, 1))

    def write_and_fail():
        model.write_text("two")
        raise TrtconvError("no")

    with pytest.raises(TrtconvError) as caught, telling_of_earlier([model]):
        write_and_fail()
    assert not caught.value.details
