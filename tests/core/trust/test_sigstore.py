"""A Sigstore bundle is verified offline: whose identity, by which provider, logged where, over which files."""

import base64
import json
import shutil
import socket

import pytest

pytest.importorskip("model_signing.signing")

from tests.core.trust.sets import write_set
from tests.core.trust.sigstore_instance import Sigstore
from tests.core.trust.test_signature import write_key
from trtconv.core.artifacts import beside
from trtconv.core.errors import UntrustedError
from trtconv.core.trust.signature import SigningKey, sign_set, verify_set
from trtconv.core.trust.trust import Trust

IDENTITY, ISSUER = "builder@example.test", "https://accounts.example.test"


@pytest.fixture(scope="module")
def instance():
    return Sigstore()


@pytest.fixture(scope="module")
def signed(tmp_path_factory, instance):
    """A set whose statement, as `sign` writes it, was signed by an identity; and the instance's trust configuration."""
    folder = tmp_path_factory.mktemp("sigstore")
    write_key(folder, "key")
    engine = write_set(folder / "out")
    sign_set(engine, SigningKey(folder / "key.pem"), "0.1.0")
    path = beside(engine, ".sig")
    payload = base64.b64decode(json.loads(path.read_text())["dsseEnvelope"]["payload"])
    path.write_text(json.dumps(instance.sign(payload, IDENTITY, ISSUER)))
    (folder / "trust.json").write_text(json.dumps(instance.trust_config()))
    return folder


@pytest.fixture
def engine(signed, tmp_path):
    shutil.copytree(signed / "out", tmp_path / "out")
    return tmp_path / "out" / "model.engine"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def trust_of(signed, identity=IDENTITY, issuer=ISSUER):
    return Trust(identity=identity, issuer=issuer, trust_config=signed / "trust.json")


def test_a_bundle_of_the_named_identity_holds(signed, engine):
    verified = verify_set(engine, trust_of(signed))
    assert verified.signer == f"{IDENTITY} (by {ISSUER})"
    assert "model.engine" in verified.digests
    assert verified.proofs


def test_on_the_command_line(signed, engine):
    from click.testing import CliRunner

    from trtconv.cli.commands.verify import command

    words = [str(engine), "--identity", IDENTITY, "--issuer", ISSUER, "--trust-config", str(signed / "trust.json")]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert IDENTITY in result.output


@pytest.mark.parametrize("other", [{"identity": "somebody@example.test"}, {"issuer": "https://other.example.test"}])
def test_another_identity_or_provider_does_not(signed, engine, other):
    with pytest.raises(UntrustedError, match="does not hold"):
        verify_set(engine, trust_of(signed, **other))


def test_another_instance_is_not_believed(signed, engine, tmp_path):
    (tmp_path / "trust.json").write_text(json.dumps(Sigstore().trust_config()))
    with pytest.raises(UntrustedError, match="does not hold"):
        verify_set(engine, trust_of(tmp_path))


@pytest.mark.parametrize("role", ["ctlogs", "tlogs"])
def test_each_log_counts(signed, engine, instance, tmp_path, role):
    config, other = instance.trust_config(), Sigstore().trust_config()
    config["trustedRoot"][role] = other["trustedRoot"][role]
    (tmp_path / "trust.json").write_text(json.dumps(config))
    with pytest.raises(UntrustedError, match="does not hold"):
        verify_set(engine, trust_of(tmp_path))


def test_a_file_that_was_changed_after_it_was_signed(signed, engine):
    engine.write_bytes(engine.read_bytes() + b"x")
    with pytest.raises(UntrustedError):
        verify_set(engine, trust_of(signed))


def payload_of_others(bundle):
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(b"{}").decode()


def later(bundle):
    bundle["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = "1800000000"


def other_root(bundle):
    proof = bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]
    proof["rootHash"] = base64.b64encode(bytes(32)).decode()


def without_log(bundle):
    bundle["verificationMaterial"]["tlogEntries"] = []


@pytest.mark.parametrize("change", [payload_of_others, later, other_root, without_log])
def test_a_bundle_that_was_changed(signed, engine, change):
    path = beside(engine, ".sig")
    bundle = json.loads(path.read_text())
    change(bundle)
    path.write_text(json.dumps(bundle))
    with pytest.raises(UntrustedError):
        verify_set(engine, trust_of(signed))
