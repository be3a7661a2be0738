"""The bill of materials of a set: CycloneDX with the model, its files by digest, and what it was made with."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import MissingDependencyError
from trtconv.core.trust.attestation import BUILDER
from trtconv.core.trust.signed_set import SignedSet

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

INSTALL = "pip install 'model-signing>=1.1,<2' pyopenssl 'cyclonedx-python-lib>=11,<12'"
# CycloneDX' types of components.
MODEL, LIBRARY = "machine-learning-model", "library"
# What the statement about the set covers, not what belongs to the model.
_NO_PARTS = ("attestation", "bom", "report", "report_page")


def bill_of_materials(files: SignedSet, version: str) -> str:
    """The JSON of a CycloneDX 1.6 document, the same for the same files. Raises MissingDependencyError."""
    try:
        from cyclonedx.model.bom import Bom
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError as error:
        raise MissingDependencyError("writing a bill of materials needs cyclonedx-python-lib", hint=INSTALL) from error
    subject = next((r for r in ("engine", "rewritten", "model") if r in files.files), "")
    root, parts = _root(files, subject), _parts(files, subject)
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{BUILDER}/{_digest_of(files)}"))
    bom.metadata.component = root
    bom.metadata.tools.components.update(
        _component(name, "application", version=str(number)) for name, number in _tools(files, version).items()
    )
    bom.register_dependency(root, parts)
    return _without_time(JsonV1Dot6(bom).output_as_string(indent=1))


def _component(name: str, kind: str, sha256: str = "", version: str = "", **more: Any) -> Component:
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType

    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []
    # The library draws references at random, and one document has to have the same bytes each time.
    reference = f"{kind}:{name}"
    return Component(
        name=name, type=ComponentType(kind), version=version or None, bom_ref=reference, hashes=hashes, **more
    )


def _root(files: SignedSet, subject: str) -> Component:
    """What the document is about, with the facts that say what it serves."""
    from cyclonedx.model import Property

    manifest = files.engine_manifest
    facts = {
        "precision": manifest.get("precision"),
        "shape space": manifest.get("space") or files.model_manifest.get("space"),
        "backend": f"{manifest['backend']} {manifest['version']}" if manifest else None,
    }
    name = files.files[subject].name if subject else files.subject.name
    properties = [Property(name=f"trtconv:{k}", value=str(v)) for k, v in facts.items() if v]
    return _component(name, MODEL, files.digest(subject), properties=properties)


def _parts(files: SignedSet, subject: str) -> list[Component]:
    """The other files of the set, and the plugin libraries that the engine names but the set does not hold."""
    kinds = {"rewritten": MODEL, "model": MODEL, **{r: LIBRARY for r in files.files if r.startswith("plugin:")}}
    parts = [
        _component(file.name, kinds.get(role, "data"), file.sha256)
        for role, file in files.files.items()
        if role not in (*_NO_PARTS, subject)
    ]
    names = {p.name for p in parts}
    plugins = sorted((files.engine_manifest.get("plugins") or {}).items())
    return parts + [_component(name, LIBRARY, digest) for name, digest in plugins if name not in names]


def _tools(files: SignedSet, version: str) -> dict[str, Any]:
    """What the set was made with, by name: its version."""
    versions, engine = files.model_manifest.get("versions") or {}, files.engine_manifest
    tools = {"trtconv": version, **{k: v for k, v in versions.items() if k != "trtconv"}}
    return {**tools, engine["backend"]: engine["version"]} if engine else tools


def _digest_of(files: SignedSet) -> str:
    """One text for the content of the set."""
    return "/".join(f.sha256 for role, f in files.files.items() if role not in _NO_PARTS)


def _without_time(text: str) -> str:
    """The document without the time at which it was written, which is optional."""
    import json

    document = json.loads(text)
    document["metadata"].pop("timestamp", None)
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
