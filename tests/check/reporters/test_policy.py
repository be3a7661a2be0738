"""Pages run the scripts that trtconv put into them and no others."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from trtconv.check.reporters.html.network.data import DrawnGraph
from trtconv.check.reporters.html.network.page import graph_html
from trtconv.check.reporters.html.report import html_text
from trtconv.core.report import CheckReport
from trtconv.core.tolerance import NO_LIMITS

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Attributes(HTMLParser):
    def __init__(self):
        super().__init__()
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs


def drawn() -> str:
    return graph_html(DrawnGraph(HOSTILE, (), (), ()))


def reported() -> str:
    return html_text(CheckReport(HOSTILE, "onnx", HOSTILE, "none", NO_LIMITS, ()))


@pytest.mark.parametrize("page", [drawn, reported])
def test_the_policy_names_every_script_by_its_hash(page):
    text = page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert "unsafe" not in directives["script-src"]
    scripts = re.findall(r"<script(?![^>]*application/json)[^>]*>(.*?)</script>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert directives["script-src"].split() == [f"'sha256-{d}'" for d in digests]
    assert scripts
    assert "alert(1)</script>" not in text
    parser = Attributes()
    parser.feed(text)
    handlers = [name for name, _ in parser.attributes if name.startswith("on")]
    assert not handlers, "handlers in attributes would need unsafe-inline"
    links = [value for name, value in parser.attributes if name in ("src", "href", "action", "data", "srcset")]
    assert not [link for link in links if link and "//" in link]
