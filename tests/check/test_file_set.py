"""Files of two conversions side by side, references that were replaced, manifests that are gone."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from tests.cli.processes import run_trtconv
from tests.core.ledger.ledgers import write_beside
from trtconv.check import check_model
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.source_record import record_sources
from trtconv.core.model.file import load_model, save_model, set_metadata
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.requests import CheckRequest
from trtconv.pipeline import exit_code
from trtconv.proof.reference import read_samples

from .models import small_net, write_engine, write_pair

ALLOWANCE = 1e9


@pytest.fixture
def bound(tmp_path):
    """`model.trt.onnx` that names its reference, as `trtconv convert` leaves it."""
    path = write_pair(tmp_path)
    _bind(path)
    return path


def _reference(path):
    return path.with_name("model.reference.safetensors")


def _bind(path):
    model = load_model(path, weights=True)
    set_metadata(model, REFERENCE_KEY, sha256_file(_reference(path)))
    save_model(model, path)
    write_sealed(manifest_path(path.with_name("model.onnx")), {"sources": record_sources([], path)})


def _allow(reference, change):
    with safe_open(reference, framework="numpy") as stream:
        header, tensors = json.loads(stream.metadata()["trtconv"]), {n: stream.get_tensor(n) for n in stream.keys()}  # noqa: SIM118
    change(header, tensors)
    save_file(tensors, reference, metadata={"trtconv": json.dumps(header)})


def _floor(tensors, point, error, scale=1.0):
    parts = {"error": np.float32(error), "scale": np.float32(scale), "exact": np.False_}
    tensors.update({f"{point}/{kind}/y": np.full((1, 1), value) for kind, value in parts.items()})


def _large_error(_, tensors):
    for point in {n.split("/")[0] for n in tensors}:
        _floor(tensors, point, ALLOWANCE)


def _large_scale(_, tensors):
    for point in {n.split("/")[0] for n in tensors}:
        _floor(tensors, point, 0.0, ALLOWANCE)


def test_a_set_of_one_conversion_passes_without_a_word(bound):
    report = check_model(CheckRequest(bound))
    assert report.passed
    assert not [f for f in report.findings if f.level != "note"]


def test_wrong_weights_beside_a_reference_that_allows_everything_do_not_pass(bound):
    model = small_net(scale=7.0)
    set_metadata(model, REFERENCE_KEY, sha256_file(_reference(bound)))
    save_model(model, bound)
    _allow(_reference(bound), _large_error)
    report = check_model(CheckRequest(bound))
    assert exit_code(report) == 2
    assert "'model.reference.safetensors' belongs to another export than" in report.errors[0].message
    assert "convert` again" in report.errors[0].hint


@pytest.mark.parametrize("change", [_large_error, _large_scale])
def test_an_allowance_beyond_the_outputs_is_refused_also_when_it_is_bound(bound, change):
    _allow(_reference(bound), change)
    _bind(bound)
    with pytest.raises(InvalidRequestError, match=r"allows 'y' an error of 1e\+09 at .*more than the output's own"):
        check_model(CheckRequest(bound))


@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_an_allowance_that_is_no_error_is_refused(bound, value):
    def change(_, tensors):
        _floor(tensors, "p0", value)

    _allow(_reference(bound), change)
    with pytest.raises(InvalidRequestError, match="is damaged"):
        list(read_samples(_reference(bound)))


def test_what_the_module_may_round_is_still_taken(bound):
    def change(_, tensors):
        _floor(tensors, "p0", 0.5)
        tensors["p0/error/y"] = np.abs(tensors["p0/output/y"])

    _allow(_reference(bound), change)
    assert list(read_samples(_reference(bound)))


def test_a_reference_of_another_export_is_a_mixed_set_not_an_accuracy(bound):
    other = bound.parent / "other"
    other.mkdir()
    write_pair(other, small_net(scale=3.0))
    _allow(other / "model.reference.safetensors", lambda header, _: header.update(source="other.py:make"))
    (other / "model.reference.safetensors").replace(_reference(bound))
    process = run_trtconv(bound.parent, "check", bound.name)
    assert process.returncode == 2
    assert "belongs to another export than 'model.trt.onnx'" in process.stdout


def test_another_reference_that_was_named_is_said(bound):
    other = bound.with_name("mine.reference.safetensors")
    other.write_bytes(_reference(bound).read_bytes())
    _allow(other, lambda header, _: header.update(source="other.py:make"))
    report = check_model(CheckRequest(bound, other))
    assert report.passed
    assert any("is not the reference that" in f.message and f.level == "warning" for f in report.findings)


def test_a_model_that_names_no_reference_is_said(tmp_path):
    report = check_model(CheckRequest(write_pair(tmp_path)))
    assert report.passed
    assert any("does not record which reference" in f.message and f.level == "warning" for f in report.findings)


def test_an_engine_is_bound_to_its_reference(bound):
    engine = write_engine(bound.parent, reference_sha256=sha256_file(_reference(bound)))
    assert exit_code(check_model(CheckRequest(engine))) == 5, "it belongs together, and gets as far as the GPU"
    _allow(_reference(bound), lambda header, _: header.update(source="other.py:make"))
    report = check_model(CheckRequest(engine))
    assert exit_code(report) == 2
    assert "belongs to another export" in report.errors[0].message


def test_an_engine_is_bound_to_its_ledger(bound):
    ledger = write_beside(bound)
    engine = write_engine(bound.parent, ledger_sha256=sha256_file(ledger))
    assert exit_code(check_model(CheckRequest(engine))) == 5
    write_beside(bound, notes=("another",))
    report = check_model(CheckRequest(engine))
    assert exit_code(report) == 2
    assert "'model.rewrites.json' belongs to another conversion" in report.errors[0].message


def test_a_graph_is_bound_to_its_ledger(bound):
    ledger = write_beside(bound)
    assert check_model(CheckRequest(bound)).passed
    text = ledger.read_text()
    ledger.write_text(text.replace('"l2norm"', '"gelu"'))
    report = check_model(CheckRequest(bound))
    assert exit_code(report) == 2
    assert [f.message for f in report.errors] == [f"'{ledger}' was changed after it was written"]
    engine = write_engine(bound.parent, ledger_sha256=sha256_file(ledger))
    assert check_model(CheckRequest(engine)).errors[0].message == f"'{ledger}' was changed after it was written"
    write_beside(bound, sha256="0" * 64)
    report = check_model(CheckRequest(bound))
    assert "'model.trt.onnx' is not the one that 'model.rewrites.json' describes" in report.errors[0].message


def test_a_manifest_that_is_gone_does_not_switch_verification_off(bound):
    engine = write_engine(bound.parent)
    manifest_path(engine).unlink()
    process = run_trtconv(bound.parent, "check", engine.name)
    assert process.returncode == 2
    assert "nothing says what it was built from" in process.stderr
    assert "--foreign-engine" in process.stderr


def test_an_engine_from_elsewhere_is_named_and_the_verdict_says_so(bound):
    engine = write_engine(bound.parent)
    manifest_path(engine).unlink()
    process = run_trtconv(bound.parent, "check", engine.name, "--foreign-engine")
    assert process.returncode == 5
    assert "has no manifest: only its outputs" in process.stdout


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_an_edited_manifest_is_code_2(bound, command):
    engine = write_engine(bound.parent)
    path = manifest_path(engine)
    path.write_text(path.read_text().replace('"precision": "fp32"', '"precision": "fp16"'))
    process = run_trtconv(bound.parent, command, engine.name)
    assert process.returncode == 2
    assert "was changed after it was written" in process.stderr
