"""JUnit and SARIF reports against the schemas that their readers publish (see schemas/README.md)."""

import json
from pathlib import Path

import pytest

from tests.check.models import small_net, write_pair
from trtconv.check import check_model
from trtconv.check.reporters import write_reports
from trtconv.check.reporters.junit import junit_xml
from trtconv.check.reporters.sarif import sarif_dict
from trtconv.core.requests import CheckRequest
from trtconv.pipeline import check_target

from .cases import ALL

SCHEMAS = Path(__file__).parent / "schemas"
reports = pytest.mark.parametrize("report", ALL.values(), ids=ALL)


@pytest.fixture(scope="module")
def sarif():
    """A validator of SARIF 2.1.0, which is written in draft 4 of JSON Schema."""
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text()))


@pytest.fixture(scope="module")
def junit():
    """The XSD of JUnit XML."""
    xmlschema = pytest.importorskip("xmlschema")
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


def complaints(sarif, data):
    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in sarif.iter_errors(data)]


@reports
def test_sarif(sarif, report):
    assert complaints(sarif, sarif_dict(report)) == []


@reports
def test_junit(junit, report):
    junit.validate(junit_xml(report))


def test_the_schemas_do_refuse(sarif, junit):
    data = sarif_dict(ALL["bad"])
    data["runs"][0]["results"][0]["level"] = "fatal"
    assert complaints(sarif, data)
    assert complaints(sarif, {"version": "2.1.0"})
    assert not junit.is_valid(junit_xml(ALL["bad"]).replace("classname=", "class=", 1))


def test_what_real_checks_write(sarif, junit, tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    rows = [check_model(CheckRequest(path)), check_target(path, "tensorrt==8.6").as_check_report()]
    rows.append(check_model(CheckRequest(write_pair(tmp_path, small_net(baked=32)))))
    for index, report in enumerate(rows):
        files = {kind: tmp_path / f"{index}.{kind}" for kind in ("sarif", "junit")}
        write_reports(report, **files)
        assert complaints(sarif, json.loads(files["sarif"].read_text())) == []
        junit.validate(str(files["junit"]))
