"""JUnit XML of a sweep: a test case per cell."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from trtconv.core.text.display import display_text
from trtconv.sweep.engine.verdicts import CellVerdict
from trtconv.sweep.workers.outcome import FAULTS


def junit_xml(name: str, verdicts: Iterable[CellVerdict]) -> str:
    """The document: verdicts on a model are failures, faults of the machines errors, what was not run is skipped."""
    root = ET.Element("testsuites", name="trtconv sweep")
    suite = ET.SubElement(root, "testsuite", name=display_text(name))
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    total = 0.0
    for verdict in verdicts:
        case = ET.SubElement(
            suite,
            "testcase",
            name=display_text(verdict.cell.id),
            classname=display_text(verdict.cell.model),
            time=f"{verdict.seconds:.3f}",
        )
        counts["tests"] += 1
        total += verdict.seconds
        if verdict.state == "red":
            fault = verdict.kind in FAULTS
            counts["errors" if fault else "failures"] += 1
            element = ET.SubElement(
                case, "error" if fault else "failure", type=verdict.kind, message=display_text(verdict.reason)
            )
            element.text = display_text(verdict.message)
        elif verdict.state == "open":
            counts["skipped"] += 1
            ET.SubElement(case, "skipped", message=display_text(verdict.reason))
        elif verdict.state == "amber":
            ET.SubElement(case, "system-out").text = display_text(verdict.reason)
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.set("time", f"{total:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
