"""What a person reads when a room is done; the same facts as JSON for machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.report import OutputComparison
from trtconv.core.sizes import format_bytes
from trtconv.foreign.result import ForeignResult
from trtconv.proof.original import FILE, MODULE

if TYPE_CHECKING:
    from trtconv.build import BuildResult
    from trtconv.export import ExportResult
    from trtconv.pipeline import ConvertResult
    from trtconv.rewrite import RewriteResult


_WARNINGS = 3


@dataclass(frozen=True)
class Summary:
    """Lines of `label: text` for people, and the data of the `--json` document of this kind."""

    kind: str
    lines: tuple[tuple[str, str], ...]
    data: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The lines with their labels in one column."""
        width = max((len(label) for label, _ in self.lines), default=0)
        return "\n".join(f"{label.ljust(width)}  {text}" for label, text in self.lines)


def worst_error(comparisons: Iterable[OutputComparison]) -> str:
    """`error at most 3.1e-07 of each scale over 12 sample points`; the scale is that of the tolerance."""
    compared = list(comparisons)
    points = len({c.point for c in compared})
    errors = [c.max_scaled for c in compared if c.max_scaled is not None]
    return f"error at most {max(errors, default=0.0):.2g} of each scale over {points} sample points"


def _file(path: Path) -> str:
    size = path.stat().st_size if path.exists() else 0
    return f"{path} ({format_bytes(size)})"


def export_summary(result: ExportResult) -> Summary:
    """Of `trtconv export`."""
    lines = [
        ("model", _file(result.model)),
        ("exporter", result.exporter),
        ("shape space", str(result.space) or "static"),
        ("equal", worst_error(result.comparisons)),
        ("reference", _file(result.reference)),
    ]
    lines += _sizes(result)
    lines += [("note", note) for note in result.notes]
    data = {
        "model": result.model,
        "reference": result.reference,
        "manifest": result.manifest,
        "exporter": result.exporter,
        "space": result.space,
        "comparisons": [c.as_dict() for c in result.comparisons],
        "sizes": result.sizes.as_dict() if result.sizes else None,
        "notes": list(result.notes),
        "seconds": dict(result.seconds),
    }
    return Summary("export", tuple(lines), data)


def original_summary(result: ExportResult | ForeignResult) -> Summary:
    """Of the first room of a conversion: an export, or a foreign file that was taken over."""
    if not isinstance(result, ForeignResult):
        return export_summary(result)
    lines = [
        ("original", str(result.original)),
        ("model", _file(result.model)),
        ("shape space", str(result.space) or "static"),
        ("equal", worst_error(result.comparisons)),
        ("reference", _file(result.reference)),
        *(("note", note) for note in result.notes),
    ]
    data = {
        "original": result.original,
        "model": result.model,
        "reference": result.reference,
        "manifest": result.manifest,
        "space": result.space,
        "comparisons": [c.as_dict() for c in result.comparisons],
        "notes": list(result.notes),
        "seconds": dict(result.seconds),
    }
    return Summary("export", tuple(lines), data)


def _original(result: ExportResult | ForeignResult) -> str:
    if isinstance(result, ForeignResult):
        return f"{result.original}, run by {result.runner} at {len(result.points)} sample points"
    return f"{result.exporter}, {worst_error(result.comparisons)}"


def _sizes(result: ExportResult | ForeignResult) -> list[tuple[str, str]]:
    """How much of the shape space was tried, where there is more than one joint size."""
    if isinstance(result, ForeignResult) or result.sizes is None or result.sizes.total == 1:
        return []
    return [("sizes", str(result.sizes).removeprefix("sizes "))]


def rewrite_summary(result: RewriteResult) -> Summary:
    """Of `trtconv rewrite`."""
    counts: dict[str, int] = {}
    for entry in result.entries:
        counts[entry.rule] = counts.get(entry.rule, 0) + 1
    fired = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
    lines = [
        ("model", _file(result.model)),
        ("rewrites", fired or _no_rewrite(result)),
    ]
    lines += [("rejected", f"{e.rule}: {getattr(e, 'reason', '')}") for e in result.rejected]
    lines += [("note", note) for note in result.notes]
    data = {"model": result.model, "ledger": result.ledger, "rewrites": counts, "rejected": len(result.rejected)}
    return Summary("rewrite", tuple(lines), data)


def _no_rewrite(result: RewriteResult) -> str:
    """A note may say that something would have been needed."""
    return "none was kept" if result.rejected else "none" if result.notes else "none was needed"


def build_summary(result: BuildResult) -> Summary:
    """Of `trtconv build`."""
    lines = [
        ("engine", f"{result.engine} ({format_bytes(result.engine_bytes)})"),
        ("backend", f"{result.backend} {result.version}"),
    ]
    for index, profile in enumerate(result.profiles):
        shapes = "; ".join(f"{name} {' / '.join(_dims(s) for s in triple)}" for name, triple in profile.items())
        lines.append((f"profile {index}", shapes or "static"))
    data = {
        "engine": result.engine,
        "manifest": result.manifest,
        "backend": result.backend,
        "version": result.version,
        "profiles": [{n: [list(s) for s in t] for n, t in p.items()} for p in result.profiles],
        "engine_bytes": result.engine_bytes,
        "seconds": result.seconds,
    }
    return Summary("build", tuple(lines), data)


def _dims(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape))


def convert_summary(result: ConvertResult) -> Summary:
    """Of `trtconv convert`: one line per room, then the files."""
    exported, rewritten = original_summary(result.export), rewrite_summary(result.rewrite)
    warned = list(
        dict.fromkeys(f.message for r in (result.rewritten, result.engine) for f in r.findings if f.level == "warning")
    )
    more = [f"and {len(warned) - _WARNINGS} more, see the report"] if len(warned) > _WARNINGS else []
    lines = (
        *_stage_lines(result, exported, rewritten),
        *_outcome_lines(result),
        *(("warning", text) for text in warned[:_WARNINGS] + more),
        *_other_builder(result),
        *_signature_before(result.build.engine),
        *(line for line in (*exported.lines, *rewritten.lines) if line[0] in ("note", "rejected")),
    )
    data = {
        "passed": result.passed,
        "engine_ran": bool(result.engine.comparisons),
        "export": exported.data,
        "rewrite": rewritten.data,
        "build": build_summary(result.build).data,
        "seconds": dict(result.seconds),
        "warnings": warned,
        "power": _power(result),
        "report": result.report,
    }
    return Summary("convert", lines, data)


def _other_builder(result: ConvertResult) -> tuple[tuple[str, str], ...]:
    """A note where the TensorRT that is installed, and built the engine, is not the target."""
    target, built = result.target, f"{result.build.backend} {result.build.version}"
    if target is None or built.replace(" ", "-").startswith(f"{target.table}"):
        return ()
    text = f"the graph is written for {target}, and {built}, which is installed here, built the engine: `trtconv build "
    return (("note", f"{text}{result.rewrite.model.name}` where the target is installed builds its own"),)


def _signature_before(engine: Path) -> tuple[tuple[str, str], ...]:
    """A note where a signature lies beside a new engine that signs the one before it."""
    from trtconv.core.artifacts import beside
    from trtconv.core.files.earlier import written_ns
    from trtconv.core.trust.signed_set import SIGNATURE

    signature = beside(engine, SIGNATURE)
    if not 0 < written_ns(signature) < written_ns(engine):
        return ()
    return (("note", f"{signature.name} signs what lay here before: sign the new files (`trtconv sign {engine}`)"),)


def _stage_lines(result: ConvertResult, exported: Summary, rewritten: Summary) -> tuple[tuple[str, str], ...]:
    """A line for each room, with the seconds that it took."""
    engine, build = result.engine, result.build
    texts = {
        "export": _original(result.export),
        "rewrite": rewritten.lines[1][1],
        "check": f"model.trt.onnx: {worst_error(result.rewritten.comparisons)}",
        "build": f"{build.backend} {build.version}, {format_bytes(build.engine_bytes)}",
        "check engine": worst_error(engine.comparisons)
        if engine.comparisons
        else "; ".join(f.message for f in engine.findings),
    }
    labels = {"check engine": "engine"}
    if isinstance(result.export, ForeignResult):
        labels["export"] = exported.lines[0][0]
    return tuple((labels.get(n, n), f"{text}  [{result.seconds.get(n, 0.0):.1f} s]") for n, text in texts.items())


def _outcome_lines(result: ConvertResult) -> tuple[tuple[str, str], ...]:
    """What was shown, and where the files are."""
    power = _power(result)
    exported, rewritten = result.export, result.rewrite
    files = (
        exported.model,
        exported.reference,
        rewritten.model,
        rewritten.ledger,
        result.build.engine,
        result.report,
    )
    return (
        *([("power", power["line"])] if power else []),
        ("shape space", str(exported.space) or "static"),
        *_sizes(exported),
        ("verdict", _verdict(result, FILE if isinstance(exported, ForeignResult) else MODULE)),
        ("files", f"{exported.model.parent}/: " + ", ".join(p.name for p in files)),
    )


def _power(result: ConvertResult) -> Any:
    """The power of the check that was made last, as `Power.as_dict` writes it; None where none was measured."""
    return result.engine.extras.get("power") or result.rewritten.extras.get("power")


def _verdict(result: ConvertResult, original: str) -> str:
    if not result.passed:
        return "FAILED"
    if not result.engine.comparisons:
        return f"the engine's graph equals {original}; the engine itself was built but not run on this machine"
    return f"PASSED: the engine equals {original} at every sample point"
