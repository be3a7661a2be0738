"""`trtconv sign` and `trtconv verify` as a user runs them."""

import json

import pytest

pytest.importorskip("model_signing.signing")

from tests.core.trust.sets import write_set
from tests.core.trust.test_signature import write_key


def test_a_set_is_signed_and_verified(trtconv, tmp_path):
    engine = write_set(tmp_path / "out")
    write_key(tmp_path, "ours")
    write_key(tmp_path, "theirs")
    code, out, err = trtconv("sign", engine, "--key", tmp_path / "ours.pem")
    assert code == 0, err
    assert "signed 10 files" in out
    code, out, err = trtconv("sign", engine, "--key", tmp_path / "ours.pem", "--json")
    assert (code, json.loads(out)["kind"]) == (0, "sign"), err
    code, out, err = trtconv("verify", engine, "--key", tmp_path / "ours.pub")
    assert code == 0, err
    assert "VERIFIED  10 files" in out
    assert out.count("proved") == 4
    assert "proved   export   the ONNX file computes what the module computes (from net.py 555555555555)" in out
    code, out, _ = trtconv("verify", engine, "--key", tmp_path / "ours.pub", "--json")
    assert json.loads(out)["files"]["model.engine"]
    code, _, err = trtconv("verify", engine, "--key", tmp_path / "theirs.pub")
    assert code == 1
    assert "does not hold" in err
    ledger = engine.with_name("model.rewrites.json")
    text = ledger.read_text()
    ledger.write_text("{}")
    code, _, err = trtconv("verify", engine, "--key", tmp_path / "ours.pub")
    assert code == 1
    assert "error: " in err
    assert trtconv("verify", engine)[0] == 2
    ledger.write_text(text.replace('"l2norm"', '"gelu"'))
    graph = engine.with_name("model.trt.onnx")
    for words in (("sign", engine, "--key", tmp_path / "ours.pem"), ("inspect", engine), ("inspect", graph),
                  ("check", graph)):  # fmt: skip
        code, out, err = trtconv(*words)
        assert code == 2, words
        assert (out + err).count(f"'{ledger}' was changed after it was written") == 1, words
    ledger.write_text(text)
    manifest = engine.with_name("model.onnx.json")
    manifest.write_text(manifest.read_text().replace('"dynamo"', '"other"'))
    code, _, err = trtconv("sign", engine, "--key", tmp_path / "ours.pem")
    assert code == 2
    assert f"'{manifest}' was changed after it was written" in err
    engine.with_name("model.engine.json").unlink()
    code, _, err = trtconv("sign", engine, "--key", tmp_path / "ours.pem")
    assert code == 2
    assert "has no manifest" in err


def test_a_conversion_tells_of_the_signature_of_files_before(trtconv, tmp_path):
    (tmp_path / "net.py").write_text("from torch import nn\nNet = nn.Tanh\n")
    source = ("--input", "input:float32[N,3]", "--dynamic", "N=1:2:3")
    words = (f"{tmp_path / 'net.py'}:Net", *source, "-o", tmp_path / "o")
    code, out, err = trtconv("convert", *words)
    assert code == 0, err
    assert "signs what lay here before" not in out
    (tmp_path / "o" / "model.sig").write_text("{}")
    code, out, err = trtconv("convert", *words, "--force")
    assert code == 0, err
    assert "model.sig signs what lay here before" in out
