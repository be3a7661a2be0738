"""What a search has to show for itself, as plain data: the ledger that repeats it, and what the report draws."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import read_json
from trtconv.core.data.split import Parts
from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import FP32, HALF_NAMES, QUANTISED, REQUESTED_NAMES, TYPED
from trtconv.core.text.fields import Fields
from trtconv.rewrite.precision.qdq.layers import LAYER_OPS
from trtconv.tune.candidates import Candidate, CandidateModels
from trtconv.tune.contract import Contract
from trtconv.tune.finalists import Finalist, TuneVerdict
from trtconv.tune.measure import Examiner, MetricScore
from trtconv.tune.search import SearchResult

SCHEMA = 1
SUFFIX = ".tune.json"
UNKNOWN_SPEED = "not known: no GPU is here; candidates are in order of the bytes that their layers move"


def data_digest(parts: Parts) -> str:
    """SHA-256 over the digests of all samples, part by part."""
    hashed = hashlib.sha256()
    for part in (parts.calibration, parts.search, parts.judging):
        hashed.update(b"|".join(s.digest().encode() for s in part) + b"#")
    return hashed.hexdigest()


def evidence(
    contract: Contract,
    examiner: Examiner,
    parts: Parts,
    results: Sequence[SearchResult],
    verdict: TuneVerdict,
    noise_floor: float,
) -> dict[str, Any]:
    """All that was measured. Equal runs give equal data: nothing in it is a time, but of engines that were timed."""
    models = examiner.models
    chosen, baseline = verdict.chosen, verdict.baseline
    reference = baseline.measured
    return {
        "schema": SCHEMA,
        "contract": {
            "metric": contract.metric.name,
            "max_drop": contract.drop.text,
            "lowest": contract.drop.below(examiner.baseline("judging").value),
        },
        "data": {"parts": parts.sizes(), "duplicates": parts.duplicates, "sha256": data_digest(parts)},
        "target": str(models.target),
        "noise_floor_db": round(noise_floor, 2),
        "baseline": {"search": examiner.baseline("search").value, **_finalist(baseline, reference)},
        "sensitivities": [asdict(s) for r in results for s in r.sensitivities],
        "trials": [_trial(r.precision, t.candidate, t.value, t.decibels, t.holds) for r in results for t in r.trials],
        "judged": [_finalist(f, reference) for f in verdict.judged],
        "chosen": {
            **_finalist(chosen, reference),
            "rewrite": asdict(models.assignment(chosen.candidate)),
            "candidate": asdict(chosen.candidate),
            "shares": layer_shares(models, chosen.candidate),
        },
        "speed": "measured on the engine" if chosen.seconds is not None else UNKNOWN_SPEED,
        "complete": all(r.complete for r in results),
    }


def _trial(precision: str, candidate: Candidate, value: float, decibels: float, holds: bool) -> dict[str, Any]:
    return {
        "precision": precision,
        "name": str(candidate),
        "groups": list(candidate.groups),
        "value": value,
        "decibels": decibels,
        "holds": holds,
    }


def _finalist(finalist: Finalist, reference: MetricScore) -> dict[str, Any]:
    return {
        "name": str(finalist.candidate),
        "precision": finalist.candidate.precision,
        "groups": list(finalist.candidate.groups),
        "judging": finalist.measured.value,
        "drop": reference.value - finalist.measured.value,
        "scatter": finalist.measured.scatter(reference),
        "decibels": finalist.measured.decibels,
        "holds": finalist.holds,
        "cost": finalist.cost,
        "seconds": finalist.seconds,
        "engine_layers": finalist.layers.as_dict(),
        "failure": finalist.failure,
    }


def layer_shares(models: CandidateModels, candidate: Candidate) -> dict[str, float]:
    """The share of layers with weights that read each precision, from the graph that is built."""
    graph = models.build(candidate).graph
    makers = {o: n for n in graph.node for o in n.output}
    types = {t.name: t.data_type for t in graph.initializer}
    names = {p.onnx: p.name for p in (*TYPED, *QUANTISED)}
    counts: Counter[str] = Counter()
    for node in graph.node:
        if node.op_type in LAYER_OPS and len(node.input) > 1:
            maker = makers.get(node.input[1])
            if maker is not None and maker.op_type == "DequantizeLinear":
                counts[names.get(types.get(maker.input[2], 0), "other")] += 1
            elif node.input[1] in types:
                counts[names.get(types[node.input[1]], "other")] += 1
    total = sum(counts.values())
    return {name: round(count / total, 4) for name, count in sorted(counts.items())} if total else {}


def read_chosen(path: Path) -> Candidate:
    """The candidate that a ledger says. Raises InvalidRequestError for a file that is none."""
    data = read_json(path, "ledger")
    try:
        choice = Fields(data).table("chosen").table("candidate")
        precision, rest = choice.text("precision"), choice.text("rest")
        if precision not in REQUESTED_NAMES or rest not in (FP32.name, *HALF_NAMES):
            raise ValueError(f"it chose {precision} and {rest}")
        return Candidate(precision, choice.texts("groups"), rest, choice.texts("rest_fp32"))
    except ValueError as error:
        raise InvalidRequestError(
            f"'{path}' is not a ledger of trtconv tune: {error}", hint="name a model.tune.json"
        ) from error
