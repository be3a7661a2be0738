"""The bill of materials of a set: CycloneDX with the model, its files by digest, and what it was made with."""

from __future__ import annotations

import uuid
from typing import Any

from trtconv.core.errors import MissingDependencyError
from trtconv.core.trust.attestation import BUILDER
from trtconv.core.trust.signed_set import SignedSet

INSTALL = "pip install 'trtconv[sign]'"
# What the statement about the set covers, not what belongs to the model.
_NO_PARTS = ("attestation", "bom", "report")


def bill_of_materials(files: SignedSet, version: str) -> str:
    """The JSON of a CycloneDX 1.6 document, the same for the same files. Raises MissingDependencyError."""
    try:
        from cyclonedx.model import HashAlgorithm, HashType, Property
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError as error:
        raise MissingDependencyError("writing a bill of materials needs cyclonedx-python-lib", hint=INSTALL) from error

    def component(name: str, kind: ComponentType, sha256: str = "", number: str = "", **more: Any) -> Component:
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []
        # The library draws references at random, and one document has to have the same bytes each time.
        reference = f"{kind.value}:{name}"
        return Component(name=name, type=kind, version=number or None, bom_ref=reference, hashes=hashes, **more)

    manifest, model = files.engine_manifest, files.model_manifest
    subject = next((r for r in ("engine", "rewritten", "model") if r in files.files), "")
    facts = {
        "precision": manifest.get("precision"),
        "shape space": manifest.get("space") or model.get("space"),
        "backend": f"{manifest['backend']} {manifest['version']}" if manifest else None,
    }
    properties = [Property(name=f"trtconv:{k}", value=str(v)) for k, v in facts.items() if v]
    root = component(
        files.files[subject].name if subject else files.subject.name,
        ComponentType.MACHINE_LEARNING_MODEL,
        files.digest(subject),
        properties=properties,
    )
    kinds = dict.fromkeys(("rewritten", "model"), ComponentType.MACHINE_LEARNING_MODEL)
    kinds |= {role: ComponentType.LIBRARY for role in files.files if role.startswith("plugin:")}
    parts = [
        component(file.name, kinds.get(role, ComponentType.DATA), file.sha256)
        for role, file in files.files.items()
        if role not in (*_NO_PARTS, subject)
    ]
    named = {p.name for p in parts}
    for name, digest in sorted((manifest.get("plugins") or {}).items()):
        if name not in named:
            parts.append(component(name, ComponentType.LIBRARY, digest))
    tools = {"trtconv": version, **{k: v for k, v in (model.get("versions") or {}).items() if k != "trtconv"}}
    if manifest:
        tools[manifest["backend"]] = manifest["version"]
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{BUILDER}/{_digest_of(files)}"))
    bom.metadata.component = root
    bom.metadata.tools.components.update(
        component(name, ComponentType.APPLICATION, number=str(number)) for name, number in tools.items()
    )
    bom.register_dependency(root, parts)
    return _without_time(JsonV1Dot6(bom).output_as_string(indent=1))


def _digest_of(files: SignedSet) -> str:
    """One text for the content of the set."""
    return "/".join(f.sha256 for role, f in files.files.items() if role not in _NO_PARTS)


def _without_time(text: str) -> str:
    """The document without the time at which it was written, which is optional."""
    import json

    document = json.loads(text)
    document["metadata"].pop("timestamp", None)
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
