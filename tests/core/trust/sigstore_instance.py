"""A Sigstore of our own, without a network: a certificate authority, a certificate log, a transparency log.

What Fulcio, its CT log and Rekor do for a bundle, with keys that this process makes: a short-lived certificate for an
identity with an embedded SCT (RFC 6962), a DSSE entry of Rekor v1 with inclusion proof, signed checkpoint and inclusion
promise. `trust_config` is the JSON with which a verifier believes this instance instead of the public one.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import struct
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

PAYLOAD_TYPE = "application/vnd.in-toto+json"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SIGNED = START + datetime.timedelta(days=1)
ORIGIN = "log.example.test - 1"
OIDC_ISSUER = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
SCT_LIST = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
USAGE = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, form)


def _id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_spki(key)).digest()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _usage(*names: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in names for name in USAGE})


class Sigstore:
    """One instance. `sign` gives a bundle for a payload, signed by an identity that `issuer` vouches for."""

    def __init__(self) -> None:
        self._authority, self._certificates, self._log = _key(), _key(), _key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority.example.test")])
        public = self._authority.public_key()
        self._root = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(START + datetime.timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), True)
            .add_extension(_usage("key_cert_sign", "crl_sign"), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .sign(self._authority, hashes.SHA256())
        )

    def sign(self, payload: bytes, identity: str, issuer: str) -> dict[str, Any]:
        """A Sigstore bundle (version 0.3) over a DSSE envelope with this payload, as plain JSON."""
        key = _key()
        certificate = self._certificate(key, identity, issuer)
        kind, length = PAYLOAD_TYPE.encode(), str(len(payload)).encode()
        signature = _sign(key, b" ".join((b"DSSEv1", str(len(kind)).encode(), kind, length, payload)))
        envelope = {
            "payload": _text(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": _text(signature), "keyid": ""}],
        }
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": _text(certificate.public_bytes(serialization.Encoding.DER))},
                "tlogEntries": [self._entry(payload, signature, pem, envelope)],
            },
            "dsseEnvelope": envelope,
        }

    def trust_config(self) -> dict[str, Any]:
        """Sigstore's ClientTrustConfig for this instance."""
        since = {"start": START.isoformat().replace("+00:00", "Z")}
        url = "https://example.test"
        service = [{"url": url, "majorApiVersion": 1, "validFor": since, "operator": "example.test"}]

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            public = {"rawBytes": _text(_spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since}
            return {
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": public,
                "logId": {"keyId": _text(_id(key))},
            }

        root = _text(self._root.public_bytes(serialization.Encoding.DER))
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [log(self._log)],
                "ctlogs": [log(self._certificates)],
                "certificateAuthorities": [{
                    "subject": {"organization": "example", "commonName": "authority.example.test"}, "uri": url,
                    "certChain": {"certificates": [{"rawBytes": root}]}, "validFor": since,
                }],
                "timestampAuthorities": [],
            },
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "caUrls": service,
                "oidcUrls": service, "rekorTlogUrls": service, "tsaUrls": [],
                "rekorTlogConfig": {"selector": "ANY"}, "tsaConfig": {"selector": "ANY"},
            },
        }  # fmt: skip

    def _certificate(self, key: ec.EllipticCurvePrivateKey, identity: str, issuer: str) -> x509.Certificate:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._root.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(SIGNED - datetime.timedelta(minutes=5))
            .not_valid_after(SIGNED + datetime.timedelta(minutes=5))
            .add_extension(_usage("digital_signature"), True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(identifier, False)
            .add_extension(x509.SubjectAlternativeName([x509.RFC822Name(identity)]), True)
            .add_extension(x509.UnrecognizedExtension(OIDC_ISSUER, issuer.encode()), False)
        )
        # The log signs what the certificate will be without the list; then the list goes in.
        entry = builder.sign(self._authority, hashes.SHA256()).tbs_certificate_bytes
        milliseconds = int(SIGNED.timestamp() * 1000)
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + _id(self._authority)
        signed += struct.pack("!I", len(entry))[1:] + entry + struct.pack("!H", 0)
        signature = _sign(self._certificates, signed)
        stamp = b"\0" + _id(self._certificates) + struct.pack("!QHBBH", milliseconds, 0, 4, 3, len(signature))
        stamp += signature
        stamps = struct.pack("!HH", len(stamp) + 2, len(stamp)) + stamp
        listed = x509.UnrecognizedExtension(SCT_LIST, b"\x04" + _der_length(len(stamps)) + stamps)
        return builder.add_extension(listed, False).sign(self._authority, hashes.SHA256())

    def _entry(self, payload: bytes, signature: bytes, pem: bytes, envelope: dict[str, Any]) -> dict[str, Any]:
        digests = [hashlib.sha256(d).hexdigest() for d in (json.dumps(envelope).encode(), payload)]
        body = _canonical(
            {
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": {"algorithm": "sha256", "value": digests[0]},
                    "payloadHash": {"algorithm": "sha256", "value": digests[1]},
                    "signatures": [{"signature": _text(signature), "verifier": _text(pem)}],
                },
            }
        )
        seconds = int(SIGNED.timestamp())
        promise = {"body": _text(body), "integratedTime": seconds, "logID": _id(self._log).hex(), "logIndex": 0}
        # The only entry of its log: its hash is the root.
        root = hashlib.sha256(b"\0" + body).digest()
        note = f"{ORIGIN}\n1\n{_text(root)}\n"
        checkpoint = _text(_id(self._log)[:4] + _sign(self._log, note.encode()))
        return {
            "logIndex": "0",
            "logId": {"keyId": _text(_id(self._log))},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(seconds),
            "inclusionPromise": {"signedEntryTimestamp": _text(_sign(self._log, _canonical(promise)))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": _text(root),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\u2014 {ORIGIN.split()[0]} {checkpoint}\n"},
            },
            "canonicalizedBody": _text(body),
        }


def _canonical(data: dict[str, Any]) -> bytes:
    """RFC 8785, for objects of ASCII texts and integers."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _der_length(length: int) -> bytes:
    if length < 128:
        return bytes([length])
    digits = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([128 | len(digits)]) + digits
