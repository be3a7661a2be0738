"""The commands of two pages, run one after the other as a reader would type them."""

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


@pytest.mark.slow
def test_the_tutorial(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("tensorrt_rtx")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "tutorial" / "first-conversion.md"
    (source,) = blocks(page, "python")
    (tmp_path / "net.py").write_text(source)
    assert type_commands("docs/tutorial/first-conversion.md") == [0]
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
