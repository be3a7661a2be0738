"""Signing a set and verifying it, with OpenSSF model-signing: https://github.com/sigstore/model-transparency.

One signature covers the SHA-256 of every file of the set, in the bundle format of Sigstore. What was verified is given
on as digests, so that whoever uses a file compares the bytes that it has, not a file that may be another one by then.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import beside, replacing, require_file, write_json, write_text
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, UntrustedError
from trtconv.core.files.artifact_set import digest_set
from trtconv.core.files.earlier_reports import require_signature_or_nothing
from trtconv.core.files.set_lock import locked_set
from trtconv.core.text.error_text import first_line
from trtconv.core.text.json_text import parse_json
from trtconv.core.trust.attestation import statement
from trtconv.core.trust.bom import INSTALL, bill_of_materials
from trtconv.core.trust.signed_set import ATTESTATION, BOM, SIGNATURE, SignedSet, read_set, require_consistent
from trtconv.core.trust.trust import Trust

PREDICATE = "https://model_signing/signature/v1.0"
_SIGNATURE_LIMIT = 16 << 20
# Characters of a library's message that are quoted.
_LONGEST = 300
_HINT = "do not use it; get it again from where it was signed"


@dataclass(frozen=True)
class SigningKey:
    """A private key (PEM, elliptic curve), its password, and the certificate and chain that vouch for it."""

    key: Path
    password: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    chain: tuple[Path, ...] = ()


@dataclass(frozen=True)
class SignResult:
    """What was written, and what it covers."""

    signature: Path
    attestation: Path
    bom: Path
    files: SignedSet
    statement: Mapping[str, Any]


@dataclass(frozen=True)
class VerifiedSet:
    """Digests that the signer vouches for, by file name; `statement` is the attestation, empty where there is none."""

    subject: Path
    digests: Mapping[str, str]
    signer: str
    trust: Trust
    statement: Mapping[str, Any]

    @property
    def proofs(self) -> tuple[Mapping[str, Any], ...]:
        """The proofs that the attestation lists."""
        definition = self.statement.get("predicate", {}).get("buildDefinition", {})
        return tuple(definition.get("internalParameters", {}).get("proofs", ()))

    def require(self, path: Path, content: bytes) -> None:
        """Raise UntrustedError unless these bytes are those that were signed under the name of `path`."""
        expected = self.digests.get(path.name)
        if expected is None:
            raise UntrustedError(f"'{path}' is not in the signature", hint=_HINT)
        if hashlib.sha256(content).hexdigest() != expected:
            raise UntrustedError(f"'{path}' is not the file that was signed", hint=_HINT)


def sign_set(subject: Path, key: SigningKey, version: str, output: Path | None = None) -> SignResult:
    """Write the attestation and the bill of materials beside `subject`, and sign the set.

    Raises InvalidRequestError for a mixed set, a key that cannot be used or a file in the signature's place that is
    none, OutputBusyError while another process writes the set, MissingDependencyError without model-signing.
    """
    hashing, signing, _ = _library()
    signature = output or beside(subject, SIGNATURE)
    require_signature_or_nothing(signature)
    with locked_set(subject):
        files = read_set(subject)
        require_consistent(files)
        try:
            content, parts = statement(files, version), bill_of_materials(files, version)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(f"a manifest of the set is damaged: {error}", hint="convert again") from error
        attestation, bom = beside(subject, ATTESTATION), beside(subject, BOM)
        write_json(attestation, content)
        write_text(bom, parts)
        files = read_set(subject)
        config = signing.Config().set_hashing_config(_listed_hashing(hashing, files.folder, _file_names(files)))
        private = require_file(key.key, "private key")
        try:
            if key.certificate is None:
                config.use_elliptic_key_signer(private_key=private, password=_password(key))
            else:
                config.use_certificate_signer(
                    private_key=private,
                    signing_certificate=require_file(key.certificate, "certificate"),
                    # The library cannot read an empty chain; a certificate that stands in it twice changes nothing.
                    certificate_chain=key.chain or (key.certificate,),
                )
            with replacing(signature) as temporary:
                config.sign(files.folder, temporary)
        except (ValueError, TypeError, AttributeError) as error:
            # A key of another kind lacks what the library reads of a curve.
            raise InvalidRequestError(
                f"the key '{key.key}' cannot sign: {first_line(error)[:_LONGEST]}",
                hint="an elliptic curve key in PEM: openssl ecparam -name prime256v1 -genkey -noout -out key.pem",
            ) from error
    return SignResult(signature, attestation, bom, files, content)


def verify_set(subject: Path, trust: Trust) -> VerifiedSet:
    """Verify the signature of the set that `subject` is part of, and every file of it that is there.

    Nothing of the set is parsed before its signature is verified. Raises UntrustedError when the signature is missing,
    somebody else's or of other files, or when a file of the set is not covered.
    """
    require_file(subject, "model or engine")
    path = trust.signature or beside(subject, SIGNATURE)
    if not path.is_file():
        raise UntrustedError(f"'{subject}' has no signature '{path.name}' beside it", hint="sign it: trtconv sign")
    if path.stat().st_size > _SIGNATURE_LIMIT:
        raise UntrustedError(f"the signature '{path}' has {path.stat().st_size} bytes", hint=_HINT)
    bundle = path.read_bytes()
    digests = _verified_digests(subject.parent, path, bundle, trust)
    present = digest_set(subject)
    for role, file in present.items():
        if file.name not in digests:
            raise UntrustedError(f"'{file.name}' ({role}) was not signed", hint=_HINT)
        if digests[file.name] != file.sha256:
            raise UntrustedError(f"'{file.name}' is not the file that was signed", hint=_HINT)
    if subject.name not in digests:
        raise UntrustedError(f"'{subject.name}' was not signed", hint=_HINT)
    try:
        files = read_set(subject)
        require_consistent(files)
        plugins = [f.name for role, f in files.files.items() if role.startswith("plugin:") and f.name not in digests]
    except (AttributeError, TypeError) as error:
        raise UntrustedError(f"a signed manifest of '{subject}' is damaged: {error}", hint=_HINT) from error
    if plugins:
        raise UntrustedError(f"the plugin library '{plugins[0]}' was not signed", hint=_HINT)
    return VerifiedSet(subject, digests, _signer(trust), trust, _statement(subject, digests))


def _verified_digests(folder: Path, path: Path, bundle: bytes, trust: Trust) -> dict[str, str]:
    """SHA-256 by file name out of a signature that holds, of files that are there as they were signed."""
    _, _, verifying = _library()
    config = verifying.Config().set_ignore_unsigned_files(True)
    try:
        names = _signed_names(bundle)
        if trust.key is not None:
            config.use_elliptic_key_verifier(public_key=_public_key(trust.key))
        elif trust.certificates:
            config.use_certificate_verifier(
                certificate_chain=[require_file(c, "certificate") for c in trust.certificates]
            )
        else:
            config.use_sigstore_verifier(
                identity=trust.identity, oidc_issuer=trust.issuer, trust_config=trust.trust_config
            )
        # The library reads the signature from a file: a copy that nobody else can change, of the bytes parsed here.
        with tempfile.TemporaryDirectory(prefix="trtconv-signature-") as private:
            copy = Path(private) / "signature"
            copy.write_bytes(bundle)
            config.verify(folder, copy)
    except InvalidRequestError:
        raise
    except Exception as error:  # the library, cryptography, pydantic and OpenSSL raise many unrelated classes
        reason = first_line(error)[:_LONGEST] or type(error).__name__
        raise UntrustedError(f"the signature '{path}' does not hold: {reason}", hint=_HINT) from error
    return names


def _public_key(path: Path) -> Path:
    """The path of a public key. Raises InvalidRequestError for another kind of file, a private key above all."""
    if b"PUBLIC KEY-----" not in require_file(path, "public key").read_bytes():
        raise InvalidRequestError(
            f"'{path}' holds no public key in PEM", hint=f"openssl pkey -in {path} -pubout -out key.pub.pem"
        )
    return path


def _signed_names(bundle: bytes) -> dict[str, str]:
    """What a signature says of which files; to be believed once it is verified.

    Raises ValueError for what trtconv does not write: other hashes, folders, links, the format before 1.0.
    """
    payload = parse_json(base64.b64decode(parse_json(bundle)["dsseEnvelope"]["payload"]))
    predicate = payload["predicate"]
    form = predicate["serialization"]
    if payload["predicateType"] != PREDICATE or (form["method"], form["hash_type"]) != ("files", "sha256"):
        raise ValueError("it is not a signature of files by SHA-256")
    digests = {r["name"]: r["digest"] for r in predicate["resources"] if r["algorithm"] == "sha256"}
    if len(digests) != len(predicate["resources"]):
        raise ValueError("it names a file twice, or by another hash")
    for name in digests:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise ValueError(f"it names '{name}', which is not a file beside it")
    return digests


def _listed_hashing(hashing: Any, folder: Path, names: Iterable[str]) -> Any:
    """A configuration that hashes these files of the folder and no others."""
    listed = [folder / name for name in sorted(names)]

    class ListedFiles(hashing.Config):  # type: ignore[misc]
        def hash(self, model_path: Any, *, files_to_hash: Any = None) -> Any:
            return super().hash(model_path, files_to_hash=listed)

    return ListedFiles()


def _password(key: SigningKey) -> Any:
    # model-signing gives it to cryptography as it is, which takes bytes.
    return None if key.password is None else key.password.encode()


def _file_names(files: SignedSet) -> list[str]:
    return [file.name for file in files.files.values()]


def _statement(subject: Path, digests: Mapping[str, str]) -> Mapping[str, Any]:
    path = beside(subject, ATTESTATION)
    if path.name not in digests:
        return {}
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digests[path.name]:
        raise UntrustedError(f"'{path}' is not the file that was signed", hint=_HINT)
    data = parse_json(content)
    return data if isinstance(data, dict) else {}


def _signer(trust: Trust) -> str:
    if trust.key is not None:
        digest = hashlib.sha256(trust.key.read_bytes()).hexdigest()[:16]
        return f"the key '{trust.key.name}' (sha256 {digest})"
    if trust.certificates:
        return f"a certificate under '{trust.certificates[0].name}'"
    return f"{trust.identity} (by {trust.issuer})"


def _library() -> tuple[Any, Any, Any]:
    try:
        from model_signing import hashing, signing, verifying
    except ImportError as error:
        raise MissingDependencyError("signatures need OpenSSF model-signing", hint=INSTALL) from error
    return hashing, signing, verifying
