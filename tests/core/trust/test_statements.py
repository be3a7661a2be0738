"""The attestation and the bill of materials: of standard form, the same for the same files, without paths."""

import json
import shutil
from dataclasses import replace

import pytest

pytest.importorskip("cyclonedx")

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.core.ledger.ledgers import COMPARED, PROOF, make_entry
from tests.core.trust.sets import write_set
from trtconv.core.artifacts import write_json
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.ledger.writing import write_ledger
from trtconv.core.trust.attestation import statement
from trtconv.core.trust.bom import bill_of_materials
from trtconv.core.trust.signed_set import read_set


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("set") / "out"
    folder.mkdir()
    (folder / "libown.so").write_bytes(b"library")
    return write_set(folder, plugins={"libown.so": sha256_file(folder / "libown.so"), "libfar.so": "7" * 64})


def test_the_bill_of_materials_is_valid_and_complete(engine):
    files = read_set(engine)
    text = bill_of_materials(files, "0.1.0")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    root = document["metadata"]["component"]
    assert (root["type"], root["name"]) == ("machine-learning-model", "model.engine")
    assert root["hashes"] == [{"alg": "SHA-256", "content": sha256_file(engine)}]
    parts = {c["name"]: c for c in document["components"]}
    assert set(parts) == {"libfar.so", "libown.so", "model.engine.json", "model.onnx", "model.onnx.json",
                          "model.reference.safetensors", "model.rewrites.json", "model.trt.onnx"}  # fmt: skip
    assert parts["libfar.so"]["type"] == parts["libown.so"]["type"] == "library"
    assert parts["libfar.so"]["hashes"][0]["content"] == "7" * 64
    tools = {c["name"]: c["version"] for c in document["metadata"]["tools"]["components"]}
    assert tools == {"trtconv": "0.1.0", "torch": "2.13.0", "tensorrt": "11.1.0"}


def test_the_statement_has_the_form_of_in_toto_and_slsa(engine):
    content = statement(read_set(engine), "0.1.0")
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    assert content["predicateType"] == "https://slsa.dev/provenance/v1"
    assert {"buildType", "externalParameters", "resolvedDependencies"} <= set(content["predicate"]["buildDefinition"])
    assert content["predicate"]["runDetails"]["builder"]["id"]
    subjects = {s["name"]: s["digest"]["sha256"] for s in content["subject"]}
    assert subjects["model.engine"] == sha256_file(engine)
    assert "libown.so" in subjects
    resolved = content["predicate"]["buildDefinition"]["resolvedDependencies"]
    dependencies = {d["name"]: d["digest"]["sha256"] for d in resolved}
    assert dependencies["net.py"] == "5" * 64
    assert dependencies["libfar.so"] == "7" * 64


def test_the_same_files_elsewhere_give_the_same_bytes(engine, tmp_path):
    shutil.copytree(engine.parent, tmp_path / "copy")
    copy = read_set(tmp_path / "copy" / "model.engine")
    texts = [json.dumps(statement(f, "0.1.0")) + bill_of_materials(f, "0.1.0") for f in (read_set(engine), copy)]
    assert texts[0] == texts[1]
    assert str(engine.parent) not in texts[0]


def test_a_report_of_other_files_is_no_proof(engine, tmp_path):
    shutil.copytree(engine.parent, tmp_path / "copy")
    report = tmp_path / "copy" / "model.report.json"
    data = json.loads(report.read_text())
    data["extras"]["files"]["subject"] = "0" * 64
    write_json(report, data)
    content = statement(read_set(tmp_path / "copy" / "model.engine"), "0.1.0")
    steps = [p["step"] for p in content["predicate"]["buildDefinition"]["internalParameters"]["proofs"]]
    assert steps == ["export", "rewrite", "rewrite"]


def test_a_proof_that_failed_is_listed_as_failed(engine, tmp_path):
    shutil.copytree(engine.parent, tmp_path / "copy")
    ledger = tmp_path / "copy" / "model.rewrites.json"
    wrong = replace(PROOF, comparisons=(replace(COMPARED, passed=False),))
    write_ledger(ledger, replace(read_ledger(ledger), entries=(make_entry(proof=wrong),)))
    content = statement(read_set(tmp_path / "copy" / "model.engine"), "0.1.0")
    proofs = content["predicate"]["buildDefinition"]["internalParameters"]["proofs"]
    assert [p["passed"] for p in proofs if p["step"] == "rewrite"] == [False, True]
