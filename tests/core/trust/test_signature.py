"""A signed set: every file of it counts, nobody else's signature does, and what is loaded is what was signed."""

import base64
import datetime
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("model_signing.signing")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.core.trust.sets import write_set
from trtconv.core.artifacts import beside, write_json
from trtconv.core.errors import InvalidRequestError, UntrustedError
from trtconv.core.files.artifact_set import sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.trust.signature import SigningKey, sign_set, verify_set
from trtconv.core.trust.trust import EngineCode, Trust, named_code


def write_key(folder: Path, name: str, password: bytes | None = None) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    protection = serialization.BestAvailableEncryption(password) if password else none
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, protection)
    (folder / f"{name}.pem").write_bytes(private)
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return key


def write_certificate(folder, name, key, issuer, issuer_key, *, authority):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issued_by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    usage = x509.KeyUsage(not authority, False, False, False, False, authority, authority, False, False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issued_by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), True)
        .add_extension(usage, True)
        .sign(issuer_key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A folder with keys, and a signed set in `out`."""
    folder = tmp_path_factory.mktemp("signed")
    write_key(folder, "ours")
    write_key(folder, "theirs")
    engine = write_set(folder / "out")
    sign_set(engine, SigningKey(folder / "ours.pem"), "0.1.0")
    return folder


@pytest.fixture
def engine(signed, tmp_path):
    shutil.copytree(signed / "out", tmp_path / "out")
    return tmp_path / "out" / "model.engine"


@pytest.fixture
def trust(signed):
    return Trust(key=signed / "ours.pub")


def test_a_signed_set_is_verified_with_its_proofs(engine, trust):
    verified = verify_set(engine, trust)
    assert set(verified.digests) == {p.name for p in engine.parent.iterdir()} - {"model.sig"}
    assert verified.digests["model.engine"] == sha256_file(engine)
    assert [(p["step"], p["passed"]) for p in verified.proofs] == [
        ("export", True),
        ("rewrite", True),
        ("rewrite", True),
        ("check", True),
    ]
    for proof in verified.proofs:
        assert proof["parents"]
        for part in (*proof["parents"], *proof["result"]):
            digests = {"net.py": "5" * 64, **verified.digests}
            assert digests[part["name"]] == part["digest"]["sha256"]
    verify_set(engine.with_name("model.trt.onnx"), trust)


def test_every_byte_of_every_file_counts(engine, trust):
    for path in sorted(engine.parent.iterdir()):
        content = path.read_bytes()
        changed = bytearray(content)
        changed[len(changed) // 2] ^= 1
        for hostile in (bytes(changed), content[:-1], content + b" ", b""):
            path.write_bytes(hostile)
            if path.suffix == ".sig" and hostile == content + b" ":
                continue  # blanks after JSON say nothing
            with pytest.raises(UntrustedError):
                verify_set(engine, trust)
        path.unlink()
        with pytest.raises((UntrustedError, InvalidRequestError)):
            verify_set(engine, trust)
        path.write_bytes(content)
    verify_set(engine, trust)


def test_a_file_that_was_not_signed_does_not_join_the_set(engine, trust):
    engine.with_name("model.onnx.data").write_bytes(b"weights of somebody else")
    with pytest.raises(UntrustedError, match=r"'model\.onnx\.data' \(model_weights\) was not signed"):
        verify_set(engine, trust)


def test_files_are_not_taken_for_each_other(engine, trust):
    model, rewritten = engine.with_name("model.onnx"), engine.with_name("model.trt.onnx")
    content = model.read_bytes(), rewritten.read_bytes()
    model.write_bytes(content[1])
    rewritten.write_bytes(content[0])
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)


def test_links_are_no_files_of_a_set(engine, trust, tmp_path):
    """A link to the same bytes can point at others a moment later."""
    engine.rename(tmp_path / "elsewhere.engine")
    engine.symlink_to(tmp_path / "elsewhere.engine")
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)


def test_nobody_elses_key_signs(engine, signed, trust):
    with pytest.raises(UntrustedError, match="does not hold"):
        verify_set(engine, Trust(key=signed / "theirs.pub"))
    sign_set(engine, SigningKey(signed / "theirs.pem"), "0.1.0")
    with pytest.raises(UntrustedError, match="does not hold"):
        verify_set(engine, trust)


def test_no_signature_and_other_sets_signatures(engine, trust, signed, tmp_path):
    other = write_set(tmp_path / "other", b"another engine")
    sign_set(other, SigningKey(signed / "ours.pem"), "0.1.0")
    shutil.copy(beside(other, ".sig"), beside(engine, ".sig"))
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)
    beside(engine, ".sig").unlink()
    with pytest.raises(UntrustedError, match=r"has no signature 'model\.sig' beside it"):
        verify_set(engine, trust)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["predicate"]["resources"].append({"name": "../x", "algorithm": "sha256", "digest": "0" * 64}),
        lambda p: p["predicate"]["resources"].pop(),
        lambda p: p["predicate"]["serialization"].update(hash_type="blake2"),
        lambda p: p.update(predicateType="https://model_signing/Digests/v0.1"),
        lambda p: p.clear(),
    ],
)
def test_a_payload_that_was_changed(engine, trust, change):
    path = beside(engine, ".sig")
    bundle = json.loads(path.read_text())
    payload = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    change(payload)
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    path.write_text(json.dumps(bundle))
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)


def test_what_is_loaded_is_what_was_signed(engine, trust):
    """The file is exchanged after it was verified and before it is read."""
    from trtconv.backends.tensorrt.engine_fit import read_engine

    verified = verify_set(engine, trust)
    assert read_engine(engine, verified=verified).plan == engine.read_bytes()
    engine.write_bytes(engine.read_bytes()[:-1] + b"!")
    with pytest.raises(UntrustedError, match="is not the file that was signed"):
        read_engine(engine, verified=verified)


def test_load_verifies_before_a_backend_is_asked(engine, trust, signed, monkeypatch):
    import trtconv
    from trtconv.backends import select

    def backend_of(path):
        raise AssertionError("the engine was looked at")

    monkeypatch.setattr(select, "backend_of", backend_of)
    with pytest.raises(UntrustedError):
        trtconv.load(engine, trust=Trust(key=signed / "theirs.pub"))
    with pytest.raises(AssertionError, match="looked at"):
        trtconv.load(engine, trust=trust)


def test_a_certificate_under_a_root(engine, tmp_path):
    root, own = write_key(tmp_path, "root"), write_key(tmp_path, "own")
    other = write_key(tmp_path, "other")
    write_certificate(tmp_path, "root", root, "root", root, authority=True)
    write_certificate(tmp_path, "other", other, "other", other, authority=True)
    write_certificate(tmp_path, "own", own, "root", root, authority=False)
    sign_set(engine, SigningKey(tmp_path / "own.pem", None, tmp_path / "own.crt"), "0.1.0")
    assert "root.crt" in verify_set(engine, Trust(certificates=(tmp_path / "root.crt",))).signer
    with pytest.raises(UntrustedError):
        verify_set(engine, Trust(certificates=(tmp_path / "other.crt",)))


def test_a_mixed_or_edited_set_is_not_signed(engine, signed):
    key = SigningKey(signed / "ours.pem")
    manifest = engine.with_name("model.engine.json")
    data = json.loads(manifest.read_text())
    write_json(manifest, {**data, "precision": "fp16"})
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        sign_set(engine, key, "0.1.0")
    write_json(manifest, sealed({**data, "plugins": {"../p.so": "0" * 64}}))
    with pytest.raises(InvalidRequestError, match="outside of its folder"):
        sign_set(engine, key, "0.1.0")
    write_json(manifest, sealed(data))
    engine.with_name("model.reference.safetensors").write_bytes(b"another")
    with pytest.raises(InvalidRequestError, match=r"is not the one that .* describes"):
        sign_set(engine, key, "0.1.0")


def test_a_signature_replaces_a_signature_alone(engine, trust, signed):
    key, module = SigningKey(signed / "ours.pem"), engine.with_name("net.py")
    module.write_text("import torch\n")
    for other in (module, engine.with_name("model.onnx"), engine.with_name("model.onnx.json")):
        before = other.read_bytes()
        with pytest.raises(InvalidRequestError, match="would replace a file that is none"):
            sign_set(engine, key, "0.1.0", other)
        assert other.read_bytes() == before
    for _ in range(2):
        sign_set(engine, key, "0.1.0")
    verify_set(engine, trust)


def test_the_page_that_people_read_is_signed(engine, trust, signed):
    page = engine.with_name("model.report.html")
    page.write_text("<html>trtconv</html>")
    sign_set(engine, SigningKey(signed / "ours.pem"), "0.1.0")
    verify_set(engine, trust)
    page.write_text("<html>trtconv says otherwise</html>")
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)


def test_keys_that_cannot_sign(engine, tmp_path):
    write_key(tmp_path, "locked", b"secret")
    (tmp_path / "junk.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    before = beside(engine, ".sig").read_bytes()
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    other = rsa.generate_private_key(65537, 2048).private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    (tmp_path / "rsa.pem").write_bytes(other)
    for key in (SigningKey(tmp_path / f"{name}.pem") for name in ("locked", "junk", "rsa")):
        with pytest.raises(InvalidRequestError, match="cannot sign"):
            sign_set(engine, key, "0.1.0")
    assert beside(engine, ".sig").read_bytes() == before
    sign_set(engine, SigningKey(tmp_path / "locked.pem", "secret"), "0.1.0")
    assert "secret" not in repr(SigningKey(tmp_path / "locked.pem", "secret"))


def test_a_private_key_verifies_nothing(engine, tmp_path):
    write_key(tmp_path, "mine")
    with pytest.raises(InvalidRequestError, match="holds no public key in PEM") as raised:
        verify_set(engine, Trust(key=tmp_path / "mine.pem"))
    assert "openssl pkey" in raised.value.hint


def test_one_signer_is_named(tmp_path):
    for wrong in ({}, {"key": tmp_path, "identity": "x", "issuer": "y"}, {"identity": "x"}):
        with pytest.raises(InvalidRequestError):
            Trust(**wrong)
    assert named_code(()) == EngineCode(False, False)
    assert named_code(("host",)) == EngineCode(host=True)


def test_a_sigstore_bundle_that_is_none_is_refused_offline(engine, tmp_path):
    (tmp_path / "trust.json").write_text("{}")
    trust = Trust(identity="a@b", issuer="https://c", trust_config=tmp_path / "trust.json")
    with pytest.raises(UntrustedError):
        verify_set(engine, trust)
