"""The commands of two pages, run one after the other as a reader would type them."""

import re
import shutil

import pytest

from tests.docs.pages import ROOT, block_commands, blocks
from trtconv.cli.main import run


def type_commands(page, words=()):
    """Run the commands of a page in the working directory; returns their exit codes."""
    codes = []
    for shown in block_commands():
        if shown.page == page:
            with pytest.raises(SystemExit) as ended:
                run([*shown.words, *words])
            codes.append(ended.value.code)
    return codes


NUMBER = r"\d[\d,.]*(?:e-\d+)?"


def require_shown(page, printed):
    """Each line that the page shows of a conversion was printed: the same label and words; numbers may be others."""
    (shown,) = [block for block in blocks(page) if "\nverdict " in block]
    for line in shown.splitlines():
        parts = re.split(rf"(\.\.\.|{NUMBER})", line)
        pattern = "".join(
            ".*" if part == "..." else NUMBER if re.fullmatch(NUMBER, part) else re.escape(part) for part in parts
        )
        assert any(re.fullmatch(pattern, other.rstrip()) for other in printed.splitlines()), (line, printed)


def test_a_line_that_is_not_printed_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\nbuild    rtx 1.2, 3.0 KiB  [0.1 s]\nverdict  the graph ... the module\n```\n")
    require_shown(page, "build    rtx 1.7, 480.1 KiB  [12 s]\nverdict  the graph equals the module\n")
    with pytest.raises(AssertionError):
        require_shown(page, "build    rtx 1.7, 480.1 KiB  [12 s]\nverdict  the file equals it\n")


@pytest.mark.slow
def test_the_first_conversion_of_the_readme(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("tensorrt_rtx")
    if shutil.which("nvidia-smi"):
        pytest.skip("the page shows what a machine without a GPU prints")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "README.md"
    (source,) = re.findall(r"(?s)cat > net.py <<'EOF'\n(.*?)EOF\n", page.read_text())
    (tmp_path / "net.py").write_text(source)
    (words,) = [s.words for s in block_commands() if s.page == "README.md" and "net.py:make_net" in s.words]
    with pytest.raises(SystemExit) as ended:
        run(words)
    assert ended.value.code == 0
    require_shown(page, capsys.readouterr().out)


@pytest.mark.slow
def test_the_tutorial(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("tensorrt_rtx")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "tutorial" / "first-conversion.md"
    (source,) = blocks(page, "python")
    (tmp_path / "net.py").write_text(source)
    assert type_commands("docs/tutorial/first-conversion.md") == [0]
    printed = capsys.readouterr().out
    assert "\nwarning " not in printed
    if not shutil.which("nvidia-smi"):  # the page shows what a machine without a GPU prints
        require_shown(page, printed)
    listed = {
        name
        for row in page.read_text().splitlines()
        if row.startswith("| `model.")
        for name in row.split("|")[1].replace("`", " ").replace(",", " ").split()
    }
    assert len(listed) >= 10
    assert listed <= {path.name for path in (tmp_path / "out").iterdir()}
    for words in (["inspect", "out/model.engine"], ["rewrite", "out/model.onnx", "--explain"], ["rules"]):
        with pytest.raises(SystemExit) as ended:
            run(words)
        assert ended.value.code == 0, words


def test_a_foreign_file(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorrt_rtx")
    from tests.foreign.models import conv_net

    monkeypatch.chdir(tmp_path)
    conv_net(tmp_path / "third.onnx", dims=("N", 3, 8, 8), out=("N", 4, 8, 8))
    shutil.copy(tmp_path / "third.onnx", tmp_path / "other.onnx")
    codes = type_commands("docs/how-to/foreign-onnx.md")
    # An engine is only run where there is a GPU; there is nothing to cut out of a file that equals itself.
    assert codes == [0, 0, 5, 0, 0, 1], capsys.readouterr()
