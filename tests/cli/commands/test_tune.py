"""`trtconv tune` as a user runs it, on a network that was trained on real data."""

import json
from pathlib import Path

import pytest

from tests.cli.documents import validated
from trtconv.cli.main import run

pytest.importorskip("torch")
DIGITS = Path(__file__).parents[3] / "examples" / "digits"
CONFIG = ("tune", "--config", DIGITS / "trtconv.toml", "--target", "tensorrt-rtx")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune") / "out"
    with pytest.raises(SystemExit) as caught:
        run([str(w) for w in (*CONFIG, "-o", folder, "-q", f"--json={folder.with_suffix('.json')}")])
    assert not caught.value.code
    return folder


@pytest.mark.slow
def test_the_digits_keep_their_contract_in_int8(out):
    facts = json.loads((out / "model.tune.json").read_text())
    assert facts["baseline"]["judging"] > 0.95
    assert facts["shipped"]["judging"] == facts["chosen"]["judging"] >= facts["contract"]["lowest"]
    assert facts["chosen"]["shares"]["int8"] > 0.5
    assert facts["data"]["parts"] == {"calibration": 225, "search": 270, "judging": 405}


def test_the_document_is_as_its_schema_says(out):
    document = validated(out.with_suffix(".json").read_text(), "tune")
    assert document["chosen"]["shares"]["int8"] > 0.5


def test_groups_are_modules_of_the_network(out):
    groups = json.loads((out / "model.tune.json").read_text())["sensitivities"]
    assert any(g["group"].startswith("body.0.first") for g in groups if g["precision"] == "int8")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--metric", "top-1"], 2, "Did you mean 'top1'"),
        (["--precisions", "int4"], 2, "not a precision to search in"),
        (["--precisions", "fp8", "--compute-capability", "7.5"], 4, "begins at 8.9"),
        (["--data", "nowhere"], 2, "there is no data"),
    ],
)
def test_what_cannot_be_is_told_before_the_export(tmp_path, trtconv, options, code, message):
    result, _, err = trtconv(*CONFIG, "-o", tmp_path / "none", *options)
    assert (result, message in err) == (code, True), err
    assert not (tmp_path / "none").exists()
