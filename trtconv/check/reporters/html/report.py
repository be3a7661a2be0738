"""The report as one HTML file that needs nothing else: style, script and pictures are inside it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from trtconv.check.reporters.html.network.page import script
from trtconv.check.reporters.html.page_facts import page_facts
from trtconv.check.reporters.html.policy import security_policy
from trtconv.core.errors import MissingDependencyError
from trtconv.core.report import CheckReport

FOLDER = "trtconv.check.reporters.html"


def html_text(report: CheckReport) -> str:
    """The page. Reads the manifests and the ledger beside the subject; what is missing there is left out."""
    facts = page_facts(report)
    networks = ("dagre.min.js", "view.js", "pair.js") if facts["networks"] else ()
    scripts = (package_text("report.js"), *(script(name) for name in networks))
    return render("report.html.jinja", scripts=scripts, **facts)


def render(template: str, *, package: str = FOLDER, scripts: Sequence[str] = (), **values: Any) -> str:
    """Fill a template of `package`; `inside(name)` in it puts a file of that package or of this one inside.

    Only `scripts` run on the page.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("an HTML report needs jinja2", hint="pip install jinja2") from error
    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def inside(name: str, owner: str = package) -> Markup:
        return Markup(package_text(name, owner))

    environment.globals["inside"] = inside
    policy = security_policy(*scripts)
    return environment.get_template(template).render(policy=policy, scripts=scripts, **values)


def package_text(name: str, package: str = FOLDER) -> str:
    """A text file that is shipped in a package, beside the reporters if none is named."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
