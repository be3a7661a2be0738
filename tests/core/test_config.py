from pathlib import Path

import pytest

from trtconv.core.config import read_config
from trtconv.core.errors import InvalidRequestError
from trtconv.core.sizes import format_bytes, parse_bytes
from trtconv.core.targets import parse_target


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trtconv.toml"
    path.write_text(text)
    return path


def test_a_config_is_read_with_its_place(tmp_path):
    config = read_config(
        write(tmp_path, '[model]\nmodule = "a.py:f"\n[dynamic]\nN = "1:2:3"\n[[input]]\nname="x"\ndims=["N",3]\n')
    )
    assert config.model.module == "a.py:f"
    assert config.base == tmp_path
    assert config.input[0].dims == ["N", 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model\n", "is not TOML"),
        ("[input]\nname = 'x'\n", r"'input' is a list of sections: write \[\[input\]\] above each"),
        ('[model]\nmodul = "a"\n', "unknown key 'model.modul'. Did you mean 'module'"),
        ("[modle]\n", "unknown key 'modle'. Did you mean 'model'"),
        ('[export]\nopset = "x"\n', "'export.opset'"),
        ('[[input]]\nname = "x"\n', "'input.0.dims'"),
        ('path = "x"\n', "unknown key 'path'"),
        ("model = 3\n", r"'model' is a section: write \[model\]"),
        ("[check]\nwhy = 3\n", "'check.why': input should be a valid string"),
        ("[export]\nopset = true\n", "'export.opset' is a number, not true or false"),
        ("[dynamic]\nN = true\n", "'dynamic.N' is"),
    ],
)
def test_a_wrong_config_names_the_key(tmp_path, text, message):
    with pytest.raises(InvalidRequestError, match=message):
        read_config(write(tmp_path, text))


def test_a_mark_of_the_byte_order_is_passed_over(tmp_path):
    path = tmp_path / "trtconv.toml"
    path.write_bytes('[model]\nmodule = "net.py:f"\n'.encode("utf-8-sig"))
    assert read_config(path).model.module == "net.py:f"


def test_a_config_in_another_encoding_names_the_line(tmp_path):
    path = tmp_path / "trtconv.toml"
    path.write_bytes('[model]\nmodule = "n\u00e9t.py:f"\n'.encode("latin-1"))
    with pytest.raises(InvalidRequestError, match="is not UTF-8 in line 2"):
        read_config(path)


def test_a_dim_may_be_a_number(tmp_path):
    assert read_config(write(tmp_path, "[dynamic]\nN = 4\n")).dynamic == {"N": 4}
    for wrong in ("[1, 2, 4]", "3.5"):
        with pytest.raises(InvalidRequestError) as caught:
            read_config(write(tmp_path, f"[dynamic]\nN = {wrong}\n"))
        assert "'dynamic.N' is no size and no range: write 4, or \"1:4:16\"" in caught.value.message
        assert not caught.value.details


def test_sizes():
    assert parse_bytes("4GiB") == 4 << 30
    assert parse_bytes("1.5 MB") == 1_500_000
    assert format_bytes(61 * (1 << 20)) == "61.0 MiB"
    with pytest.raises(InvalidRequestError, match="cannot read the size"):
        parse_bytes("4 gigs")


def test_targets():
    assert parse_target("tensorrt==8.6").generation == 8
    assert parse_target("tensorrt==8.6").max_opset == 17
    assert parse_target("tensorrt-rtx").generation == 11
    assert parse_target("tensorrt==10.16.1").strongly_typed is False
    for text in ("tensort==10", "tensorrt==9", "tensorrt==x", "onnx", "tensorrt-rtx==8"):
        with pytest.raises(InvalidRequestError, match="unknown target"):
            parse_target(text)
