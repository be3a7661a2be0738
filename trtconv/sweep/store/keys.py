"""The key of a job: the hash of everything that decides its result.

A key holds the keys of the jobs whose files are read, so that it stands for the sources and weights at the beginning.
What a module imports is known only when it was loaded: the export's manifest lists those files, and `Store.sources`
keeps the list, which is compared with what lies there now before a result counts (as a compiler's cache does it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtconv.core.files.digest import sha256_file
from trtconv.sweep.plan.cells import OWN_SPACE, Model
from trtconv.sweep.plan.configs import read_config
from trtconv.sweep.plan.jobs import Job
from trtconv.sweep.plan.sections import SweepContractSection

SCHEMA = 1
_SECTIONS = {
    "export": ("model", "input", "dynamic", "export"),
    "rewrite": ("rewrite", "build"),
    "type": ("rewrite", "build"),
    "build": ("build",),
    "check": ("check",),
    "engine": ("check",),
    "tune": ("contract", "rewrite", "build"),
    "bench": (),
}


def hash_parts(parts: Mapping[str, Any]) -> str:
    """SHA-256 of the parts as canonical JSON, in hex."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(f"{SCHEMA}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


class KeyMaker:
    """Makes keys; files are hashed once as long as their size and time stay.

    `versions` gives what is installed where a job of a class and target runs; relative paths are seen from `base`.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        versions: Mapping[tuple[str, str], Mapping[str, str]],
        base: Path = Path(),
    ) -> None:
        self._models = models
        self._base = base
        self._versions = versions
        self._digests: dict[tuple[str, int, int], str] = {}
        self._configs: dict[tuple[str, int, int], dict[str, Any]] = {}

    def key(self, job: Job, upstream: Mapping[str, str]) -> str:
        """The key of a job whose upstream keys are known; that of an export lacks what its module imports.

        Raises OSError when a file of the model cannot be read.
        """
        model = self._models[job.cell.model]
        parts: dict[str, Any] = {
            "kind": job.kind,
            "upstream": [upstream[name] for name in job.reads],
            "target": job.cell.target,
            "precision": job.cell.precision,
            "accelerator": job.accelerator,
            "versions": dict(self._versions[job.resource_class, job.cell.target]),
            "config": self._config_parts(model, job.kind),
        }
        if job.kind == "export":
            parts |= {
                "model": Path(model.spec).name or model.spec,
                "inputs": model.inputs,
                "options": model.options,
                "variables": model.variables,
                "space": model.dynamic if job.cell.space == OWN_SPACE else job.cell.space,
                "files": self.model_files(model),
            }
        if job.contract is not None:
            parts |= {"contract": asdict(job.contract), "data": self._contract_files(job.contract, model)}
        return hash_parts(parts)

    def _contract_files(self, contract: SweepContractSection, model: Model) -> list[str]:
        """The digests of what a contract judges by: data, and a metric that is somebody's function."""
        named = [(text, self._base) for text in (contract.data, contract.metric)]
        if model.config is not None:
            section = self._config(model.config).get("contract", {})
            named += [(str(section.get(key, "")), model.config.parent) for key in ("data", "metric")]
        digests = []
        for text, base in named:
            path = base / (text.rpartition(":")[0] or text)
            files = sorted(p for p in path.rglob("*") if p.is_file()) if text and path.is_dir() else [path]
            digests += [f"{p.name} {self.digest(p)}" for p in files if text and p.is_file()]
        return digests

    def scope(self, job: Job) -> str:
        """The hash of what makes the times comparable that builds of a class and target measure.

        trtconv's own files are not in it: a kernel takes as long as before.
        """
        versions = self._versions[job.resource_class, job.cell.target]
        facts = {n: v for n, v in versions.items() if n in ("platform", "gpu") or n.startswith("tensorrt")}
        return hash_parts({"kind": "timings", "target": job.cell.target, "versions": facts})

    def model_files(self, model: Model) -> list[str]:
        """The digests of the files that a model names: its module or graph, weights, and weights beside a graph."""
        paths = [Path(model.spec.rpartition(":")[0] or model.spec)] if model.spec else []
        if model.config:
            sections = self._config(model.config).get("model", {})
            for text in (str(sections.get("module", "")), str(sections.get("sample", "")), sections.get("weights", "")):
                head, _, tail = str(text).rpartition(":")
                paths += [model.config.parent / (head or tail)] if text else []
        paths += [model.weights] if model.weights else []
        for path in [p for p in paths if p.suffix == ".onnx" and p.is_file()]:
            from trtconv.core.model.file import load_model, model_files

            paths += [p for p in model_files(path, load_model(path)) if p != path]
        return [self.digest(p) for p in paths if p.is_file()]

    def digest(self, path: Path) -> str:
        """The SHA-256 of a file, in hex; empty when it is gone."""
        try:
            status = path.stat()
        except OSError:
            return ""
        identity = (str(path), status.st_size, status.st_mtime_ns)
        if identity not in self._digests:
            self._digests[identity] = sha256_file(path)
        return self._digests[identity]

    def _config_parts(self, model: Model, kind: str) -> dict[str, Any]:
        if model.config is None:
            return {}
        data = self._config(model.config)
        parts = {name: data[name] for name in _SECTIONS[kind] if name in data}
        if kind == "export":
            # An export holds to the tolerance; budgets and limits of outputs are for later.
            parts["tolerance"] = {k: data.get("check", {}).get(k) for k in ("rtol", "atol")}
        return parts

    def _config(self, path: Path) -> dict[str, Any]:
        status = path.stat()
        identity = (str(path), status.st_size, status.st_mtime_ns)
        if identity not in self._configs:
            self._configs[identity] = read_config(path)
        return self._configs[identity]
