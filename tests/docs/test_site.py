"""The pages that are made from the code say all of it, and a built site loads nothing from elsewhere."""

import html
import importlib
import json
import re
import subprocess
import sys

import click
import pytest

import trtconv
from docs_site.cli_pages import command_pages
from docs_site.outside import loaded_from_elsewhere, main
from docs_site.python_pages import KEYWORDS, python_pages
from tests.browser import CHROMIUM, needs_browser
from tests.docs.pages import PAGES, ROOT
from trtconv.cli.main import COMMANDS, cli


def commands(group, context, title="trtconv"):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{title} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command), f"{title} {name}")


def test_every_command_and_option_has_its_place():
    pages = dict(command_pages())
    assert {f"reference/cli/{name}.md" for name in COMMANDS} | {"reference/cli/index.md"} == set(pages)
    for title, command in commands(cli, click.Context(cli)):
        page = pages[f"reference/cli/{title.split(' ')[1]}.md"]
        assert f" {title}\n" in page
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "help":
                assert f"`{option.opts[-1]}`" in page, (title, option.name)


def test_help_that_is_not_wrapped_is_code():
    page = dict(command_pages())["reference/cli/convert.md"]
    assert "```sh\ntrtconv convert net.py:make_net" in page
    assert "\b" not in "".join(dict(command_pages()).values())


def test_every_name_of_the_door_and_every_option_of_a_call_is_told():
    pages = dict(python_pages())
    told = re.findall(r"(?m)^::: [\w.]+\.(\w+)$", "".join(pages.values()))
    assert sorted(told) == sorted(trtconv.__all__)
    for module, name in re.findall(r"(?m)^::: ([\w.]+)\.(\w+)$", "".join(pages.values())):
        # What is read without being imported has to be defined where the page says.
        assert getattr(importlib.import_module(module), name).__module__ == module
    for _, keywords, _ in KEYWORDS:
        for name in keywords.__annotations__:
            assert f"| `{name}` |" in pages["reference/api/options.md"]
    without_help = [row for row in pages["reference/api/options.md"].splitlines() if row.endswith("|  |")]
    assert without_help == []


def test_every_error_has_its_row_and_its_code():
    told = (ROOT / "docs" / "reference" / "python.md").read_text()
    rows = {
        name: row.split("|")[2].strip()
        for row in told[told.index("## Errors") :].splitlines()
        for name in re.findall(r"`(\w+Error)`", row.split("|")[1] if row.startswith("| `") else "")
    }
    errors = [name for name in trtconv.__all__ if name.endswith("Error")]
    assert rows == {name: str(getattr(trtconv, name).exit_code) for name in errors}


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="preload stylesheet" href="//cdn.example/x.css">',
        '<img src="HTTP://example.com/x.png">',
        "<style>@import 'https://fonts.example/x.css';</style>",
        '<p style="background: url(https://example.com/x.png)">',
        '<svg><image href="https://example.com/x.png"/></svg>',
    ],
)
def test_what_a_page_would_load_is_seen(tmp_path, page, capsys):
    (tmp_path / "index.html").write_text(f"<!doctype html>{page}")
    assert main(str(tmp_path)) == 1
    assert "index.html loads" in capsys.readouterr().err


def test_links_to_follow_and_own_files_are_no_loads(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="https://example.com">x</a><script src="../x.js"></script><img src=x>'
    )
    (tmp_path / "x.css").write_text("body { background: url('x.png') }")
    assert main(str(tmp_path)) == 0
    (tmp_path / "x.css").write_text("body { background: url(//example.com/x.png) }")
    assert list(loaded_from_elsewhere(tmp_path)) == [("x.css", "//example.com/x.png")]


def test_a_folder_that_is_no_site(tmp_path):
    assert main(str(tmp_path)) == 2


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing(site):
    assert list(loaded_from_elsewhere(site)) == []
    for page in ("index", "tutorial/first-conversion", "reference/cli/check", "reference/api/calls", "reference/rules"):
        assert (site / f"{page}.html").is_file(), page
    assert "assert_equal" in (site / "reference" / "api" / "calls.html").read_text()


@needs_browser
@pytest.mark.slow
def test_no_request_leaves_the_site_in_a_browser(site, tmp_path):
    log = tmp_path / "net.json"
    subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}",
         "--virtual-time-budget=8000", "--dump-dom", (site / "index.html").as_uri()],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    # What Chromium asks for on its own account has no origin.
    asked = [line for line in log.read_text(errors="replace").splitlines() if '"initiator":"' in line]
    page = [line for line in asked if '"initiator":"not an origin"' not in line]
    assert {url for line in page for url in re.findall(r'"url":"(https?://[^"]*)"', line)} == set()


def measured(site, page, script, folder, width=1280):
    """What a script says of a page in the browser: the page measures itself and puts the answer in its title."""
    source = site / page
    probe = source.with_name("measured.html")
    answer = f"document.title = JSON.stringify((() => {{{script}}})())"
    body = f"<script>addEventListener('load', () => {{ {answer} }})</script></body>"
    probe.write_text(source.read_text().replace("</body>", body))
    shown = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=8000",
         "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    probe.unlink()
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", shown, re.S)[1]))


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 500])
def test_names_in_first_columns_are_whole(site, tmp_path, width):
    """`InvalidRequestError` was broken before its last letter."""
    names = """return [...document.querySelectorAll("article td:first-child > code")]
        .map(n => [n.innerText, n.getClientRects().length])"""
    lines = measured(site, "reference/python.html", names, tmp_path, width)
    assert len(lines) >= 12
    assert [name for name, count in lines if count > 1] == []


CONTRAST = """
document.documentElement.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>")
const level = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 }
const light = ([r, g, b]) => 0.2126 * level(r) + 0.7152 * level(g) + 0.0722 * level(b)
const parts = text => text.match(/[\\d.]+/g).map(Number)
const over = (top, under) => [0, 1, 2].map(i => top[i] * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)))
const ground = e => e ? over(parts(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : [255, 255, 255]
const seen = {}
let count = 0
for (const scheme of ["default", "slate"]) {
  document.body.setAttribute("data-md-color-scheme", scheme)
  for (const e of document.querySelectorAll("article *:not(.headerlink)")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue
    const back = ground(e), a = light(over(parts(getComputedStyle(e).color), back)), b = light(back)
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    count += 1
    if (ratio < 4.5) seen[`${scheme} ${e.tagName}.${e.className} ${e.innerText.slice(0, 30)}`] = ratio
  }
}
return [count, seen]
"""


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        *("index", "tutorial/first-conversion", "how-to/sweep", "how-to/ci", "explanation/trust"),
        *("reference/cli/index", "reference/api/calls", "reference/api/errors"),
    ],
)
def test_text_stands_out_in_both_schemes(site, tmp_path, page):
    """WCAG 2.1, criterion 1.4.3: a contrast of 4.5. Variables and links within code had 4.47 and 4.23."""
    count, faint = measured(site, f"{page}.html", CONTRAST, tmp_path)
    assert count > 50
    assert faint == {}


def test_no_column_is_without_a_name():
    """A screen reader tells the header with each cell."""
    for page in PAGES:
        for header in re.findall(r"(?m)^(\|.*\|)\n\|[-:| ]+\|$", page.read_text()):
            cells = [cell.strip() for cell in header.strip("|").split("|")]
            assert all(cells), (page.name, header)


@needs_browser
@pytest.mark.slow
def test_the_search_answers_from_the_disk(site, tmp_path):
    """No worker runs from `file:`: a frame stands in for it (docs_site/assets/iframe-worker.js)."""
    page = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000", "--dump-dom",
         f"{(site / 'index.html').as_uri()}?q=denormal"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    assert re.search(r"[1-9]\d* matching document", page)
    assert "what-is-compared.html" in page
