import dataclasses
import re
import subprocess

import pytest

from tests.browser import CHROMIUM, needs_browser
from tests.check.models import small_net
from tests.check.reporters.cases import ALL, BAD, comparison, report
from tests.core.ledger.ledgers import make_entry, make_ledger, make_node, write_beside
from trtconv.check.reporters import write_reports
from trtconv.check.reporters.html.page_facts import page_facts
from trtconv.check.reporters.html.page_rewrites import rewrite_groups
from trtconv.check.reporters.html.report import html_text
from trtconv.check.reporters.html.svg_graph import draw_nodes
from trtconv.core.model.file import save_model
from trtconv.core.model.provenance import Origin

reports = pytest.mark.parametrize("report", ALL.values(), ids=ALL)


def browse(page, folder, *flags):
    """Open a file headless; returns the DOM after loading and the http(s) addresses that the browser asked for."""
    log = folder / "net.json"
    process = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--no-first-run", f"--user-data-dir={folder / 'profile'}",
         f"--log-net-log={log}", "--dump-dom", *flags, f"file://{page}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    # One event per line; what the browser asks for on its own account (updates, its clock) has no origin.
    events = [line for line in log.read_text(errors="replace").splitlines() if '"initiator":' in line]
    requests = [line for line in events if '"initiator":"not an origin"' not in line]
    return process.stdout, {u for line in requests for u in re.findall(r'"url":"(https?://[^"]*)"', line)}


def probe(page, script):
    """Let a page run a script once it is loaded, which its own policy would not."""
    text = f"<script>addEventListener('load',()=>{{{script}}})</script></body>"
    without = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    page.write_text(without.replace("</body>", text))


def entry(number, ops_before, ops_after):
    def nodes(ops, tag):
        names = ["x", *(f"{tag}{number}_{i}" for i in range(len(ops)))]
        rows = zip(ops, names, names[1:], strict=False)
        return [make_node(op, [a], [b], f"/{tag}/{op}", "axes=[1]") for op, a, b in rows]

    place = {"node": f"/m{number}/Div", "origin": Origin(f"m{number}", "net.py:7")}
    return make_entry(before=nodes(ops_before, "b"), after=nodes(ops_after, "a"), **place)


def big_place(folder):
    """A report of a network with 450 nodes that were all rewritten, each in a part of its own form."""
    save_model(small_net(), folder / "model.trt.onnx")
    entries = [entry(i, ["Pow", "ReduceSum", "Sqrt", "Div"][: 1 + i % 4], ["Relu"] * (1 + i % 12)) for i in range(450)]
    write_beside(folder / "model.trt.onnx", make_ledger(*entries, nodes=(450, 460)))
    module = {"source": "net.py:7", "node": "/m", "error": 1e-7, "tensors": 1}
    heat = [{"module": f"m{i}", **module} for i in range(450)]
    layer = {"kind": "conv", "dtype": "float16", "seconds": 1e-5, "tactic": ""}
    layers = [{"name": f"layer {i}", **layer} for i in range(450)]
    comparisons = [comparison(f"y{i}", f"p{j} (N={j} W=4)") for i in range(6) for j in range(13)]
    full_report = report(*comparisons, subject=str(folder / "model.trt.onnx"), extras={"heat": heat, "layers": layers})
    write_reports(full_report, html=folder / "r.html")
    return folder / "r.html"


@reports
def test_the_page_is_whole_and_refers_to_nothing_outside(report):
    text = html_text(report)
    assert text.startswith("<!DOCTYPE html>")
    for outside in ("src=", "@import", "url(http", "//cdn", '<link rel="stylesheet'):
        assert outside not in text
    assert set(re.findall(r'href="([^"]*)"', text)) <= {"data:,", "#main"}
    assert "default-src 'none'" in text


def test_names_from_a_model_cannot_become_markup():
    evil = "</script><script>alert(1)</script><img src=x>"
    bad = dataclasses.replace(BAD, subject=evil, comparisons=(comparison(evil, evil, False),))
    text = html_text(bad)
    assert evil not in text
    assert "<img" not in text
    node = {"op": evil, "name": evil, "inputs": [evil], "outputs": [evil + "2"], "attributes": evil}
    assert "<script" not in draw_nodes([node])


def test_verdict_places_and_limits_are_on_the_page():
    text = html_text(BAD)
    assert text.index("Failed") < text.index("Findings") < text.index("Pipeline")
    assert "nets/ssd.py:42 in backbone.norm, node Mul_3" in text
    assert "✗ over" in text
    assert text.count('class="l6"') == 3
    assert "not compared" in html_text(ALL["noted"]).lower()


def test_equal_rewrites_are_drawn_once():
    entries = [entry(i, ["Pow", "Div"], ["Relu"]) for i in range(30)] + [entry(31, ["Pow"], ["Relu"])]
    first, second = rewrite_groups(entries)
    assert (first["count"], len(first["places"]), first["error"], second["count"]) == (30, 30, 2e-7, 1)
    assert first["before"].count("<rect") == 3, "two nodes and the value that comes in"


def test_the_first_rewrite_with_something_to_see_is_open(tmp_path):
    save_model(small_net(), tmp_path / "model.trt.onnx")
    entries = [entry(0, ["Identity"], []), entry(1, ["Pow", "Div"], ["Relu"]), entry(2, ["Cast"], [])]
    write_beside(tmp_path / "model.trt.onnx", make_ledger(*entries))
    page = tmp_path / "r.html"
    write_reports(report(comparison("y", "p (N=1)"), subject=str(tmp_path / "model.trt.onnx"), extras={}), html=page)
    text = page.read_text()
    assert text.count('<details class="rewrite" open>') == 1
    assert text.index("Identity: 1 into 0") < text.index('<details class="rewrite" open>')
    assert text.index('<details class="rewrite" open>') < text.index("Pow, Div: 2 into 1 node") < text.index("Cast: 1")


def test_a_drawing_takes_cycles_and_unordered_nodes():
    nodes = [
        {"op": o, "name": o, "inputs": i, "outputs": u, "attributes": ""}
        for o, i, u in (("B", ["a"], ["b"]), ("A", ["b"], ["a"]), ("C", ["a", "b"], ["c"]))
    ]
    assert draw_nodes(nodes).count('class="edge"') == 4


def test_the_page_of_a_large_network_stays_small(tmp_path):
    assert big_place(tmp_path).stat().st_size < 3 << 20


@needs_browser
def test_no_request_leaves_the_page(tmp_path):
    page = big_place(tmp_path)
    probe(page, "document.title='opened'")
    dom, requests = browse(page, tmp_path)
    assert "<title>opened</title>" in dom
    assert requests == set()
    assert dom.count('<svg class="graph"') > 20


@needs_browser
def test_the_browser_test_would_see_a_request(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<!DOCTYPE html><title>x</title><img src='http://127.0.0.1:9/picture.png'>")
    assert any("127.0.0.1:9" in url for url in browse(page, tmp_path)[1])


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(tmp_path, width):
    page = big_place(tmp_path)
    # A frame of that width: Chromium's own window has a least width of 500.
    outer = tmp_path / "outer.html"
    outer.write_text(
        f"<!DOCTYPE html><iframe id=f style='width:{width}px;height:900px;border:0' src='{page.name}'></iframe>"
    )
    probe(page, "parent.postMessage([document.documentElement.scrollWidth,innerWidth],'*')")
    script = "<script>addEventListener('message',e=>{document.title='wide '+e.data})</script>"
    outer.write_text(outer.read_text() + script)
    dom, _ = browse(outer, tmp_path, "--window-size=1400,1000", "--virtual-time-budget=4000")
    scroll, inner = map(int, re.search(r"<title>wide (\d+),(\d+)</title>", dom).groups())
    assert inner == width
    assert scroll <= inner


def test_what_was_allowed_is_told_in_words():
    text = html_text(report(comparison(max_scaled=1e-7)))
    assert "Allowed: the noise floor" in text


def test_the_numbers_at_the_top_are_of_one_output_at_one_point():
    small = comparison("near", max_abs=2e-5, max_scaled=2e-5)
    large = comparison("far", max_abs=3.0, max_scaled=1e-6)
    facts = page_facts(report(small, large))
    assert (facts["worst"].output, facts["worst"].max_abs, facts["worst"].max_scaled) == ("near", 2e-5, 2e-5)
    own = dataclasses.replace(report(small, large), extras={"tolerances": {"near": {"rtol": 0.5, "atol": 0.1}}})
    assert page_facts(own)["allowed"] == 0.5
    assert "near at" in html_text(own)


def test_an_edge_over_several_rows_goes_around_the_nodes_between():
    def node(op, inputs, out):
        return {"op": op, "name": op.lower(), "inputs": inputs, "outputs": [out], "attributes": ""}

    chain = [node("Pow", ["x", "two"], "a"), node("Sqrt", ["a"], "b"), node("Add", ["b", "eps"], "c")]
    svg = draw_nodes([*chain, node("Div", ["x", "c"], "y")])
    boxes = {
        op: (float(x), float(y), float(w))
        for x, y, w, op in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*/><text[^>]*>([^<]+)', svg)
    }
    assert boxes["eps"][1] == boxes["Sqrt"][1], "an input stands right above its reader"
    (way,) = [d for d in re.findall(r'class="edge" d="([^"]+)"', svg) if d.count("V") == 3]
    for x, bottom in re.findall(r"([\d.]+) [\d.]+V([\d.]+)", way):
        row = [(left, w) for left, top, w in boxes.values() if abs(top + 40 - float(bottom)) < 1]
        assert row
        assert not any(left < float(x) < left + w for left, w in row)
