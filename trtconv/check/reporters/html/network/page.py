"""`trtconv inspect --html`: the network as a picture in one offline HTML file.

The boxes are laid out in the browser by dagre (MIT, bundled with its licence), block by block: dagre alone takes
time that grows with the square of the nodes (3 s for 2000 measured), blocks of about a hundred nodes do not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trtconv.check.reporters.html.network.data import DrawnGraph, read_graph
from trtconv.check.reporters.html.policy import security_policy
from trtconv.core.artifacts import write_report_text
from trtconv.core.trust.trust import NO_CODE, EngineCode

HERE = Path(__file__).parent


def write_graph_page(model: Path, html: Path, code: EngineCode = NO_CODE) -> None:
    """Draw an ONNX file or an engine into `html`. Raises what reading the file or writing the page raises."""
    write_report_text(html, graph_html(read_graph(model, code)))


def graph_html(graph: DrawnGraph) -> str:
    """The page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    scripts = tuple(script(name) for name in ("dagre.min.js", "view.js", "page.js"))
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html.jinja").render(
        title=graph.title,
        facts=graph.facts,
        nodes=graph.node_count,
        edges=len(graph.edges),
        data=embed_json(graph_data(graph)),
        scripts=scripts,
        policy=security_policy(*scripts),
    )


def graph_data(graph: DrawnGraph) -> dict[str, Any]:
    """What the page's script reads; short keys, since there are thousands of nodes."""
    return {
        "nodes": [
            {"o": n.op, "n": n.name, "f": [list(f) for f in n.facts], "r": n.rule, "d": n.dtype, "s": n.seconds}
            for n in graph.nodes
        ],
        "edges": [list(e) for e in graph.edges],
    }


def embed_json(data: Any) -> str:
    """JSON for a script element: no `<`, so that nothing in it can end the element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def script(name: str) -> str:
    """A bundled script; a closing tag in it would end the element that holds it."""
    return (HERE / name).read_text(encoding="utf-8").replace("</script", "<\\/script")
