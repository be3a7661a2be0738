"""The report as one HTML file that needs nothing else: style, script and pictures are inside it."""

from __future__ import annotations

from importlib import resources
from typing import Any

from trtconv.check.reporters.html.page_facts import page_facts
from trtconv.core.errors import MissingDependencyError
from trtconv.core.report import CheckReport

FOLDER = "trtconv.check.reporters.html"


def html_text(report: CheckReport) -> str:
    """The page. Reads the manifests and the ledger beside the subject; what is missing there is left out."""
    return render("report.html.jinja", **page_facts(report))


def render(template: str, **values: Any) -> str:
    """Fill a template of this package; `style(name)` and `script(name)` put a file of the package inside."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("an HTML report needs jinja2", hint="pip install jinja2") from error
    environment = Environment(
        loader=PackageLoader(FOLDER, ""), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip

    def inside(name: str) -> Markup:
        return Markup(package_text(name))

    environment.globals["inside"] = inside
    return environment.get_template(template).render(**values)


def package_text(name: str) -> str:
    """A text file that is shipped beside the reporters."""
    return resources.files(FOLDER).joinpath(name).read_text(encoding="utf-8")
