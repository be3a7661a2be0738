"""`trtconv check --heal`: the place at which an engine is wrong, cures tried in order, the first that holds shipped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import creating_folder, write_json
from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.publish import publish
from trtconv.core.files.set_lock import locked_set
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import CheckRequest
from trtconv.core.text.brief import brief_repr
from trtconv.heal.cures import try_cures
from trtconv.heal.trial import CureTrial, Diagnosis, Workbench

LEDGER = "heal.json"
REPRO = "repro"


@dataclass(frozen=True)
class HealRequest:
    """`check` names the engine that is wrong; the cured files go into the folder `output`."""

    check: CheckRequest
    output: Path


@dataclass(frozen=True)
class HealResult:
    """What was wrong, what was tried, and the cure that ships. `repro` is the folder of the cut, if one was made."""

    diagnosis: Diagnosis
    trials: tuple[CureTrial, ...]
    chosen: CureTrial
    before_seconds: float | None
    files: tuple[Path, ...] = ()
    repro: Path | None = None

    __repr__ = brief_repr

    @property
    def price(self) -> float | None:
        """How many times as long a run takes as that of the wrong engine; None where it was not measured."""
        if not self.before_seconds or self.chosen.seconds is None:
            return None
        return self.chosen.seconds / self.before_seconds

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the ledger and for JSON."""
        location = {
            "node": self.diagnosis.node,
            "tensor": self.diagnosis.tensor,
            "fused": self.diagnosis.fused,
            "source": self.diagnosis.source,
            "words": self.diagnosis.words,
        }
        return {
            "place": location,
            "before_seconds": self.before_seconds,
            "trials": [t.as_dict() for t in self.trials],
            "chosen": self.chosen.as_dict(),
            "price": self.price,
        }


def heal_engine(
    request: HealRequest, progress: Progress | None = None, *, workbench: Workbench | None = None
) -> HealResult:
    """Diagnose, try cures in order, and publish the first that holds.

    `workbench` builds and proves; by default with the backend of the engine. Raises InvalidRequestError for files that
    lack what a new build needs, AccuracyError where the graph itself is wrong or no cure holds, and what the rooms
    raise. Nothing is written then.
    """
    progress = progress or SilentProgress()
    engine = request.check.subject
    if request.output.resolve() == engine.parent.resolve():
        raise InvalidRequestError(f"'{request.output}' holds the engine that is wrong", hint="name another folder")
    with private_temporary_folder("heal") as name:
        bench = workbench or _workbench(request.check, Path(name), progress)
        progress.stage("diagnose")
        diagnosis = bench.diagnose()
        progress.stage("heal")
        trials = try_cures(bench, diagnosis, progress)
        chosen = trials[-1] if trials and trials[-1].holds else None
        if chosen is None:
            raise AccuracyError(
                f"no cure holds for '{engine}': {diagnosis.words}",
                hint="`trtconv repro` cuts the smallest failing part out for a bug report; nothing was written",
                details=[f"{t.variant.what}: {t.reason}" for t in trials],
            )
        result = HealResult(diagnosis, trials, chosen, bench.baseline_seconds())
        with creating_folder(request.output), locked_set(request.output / engine.name):
            files = publish(chosen.folder, request.output) if chosen.folder is not None else ()
            write_json(request.output / LEDGER, result.as_dict())
            repro = _repro(request, diagnosis, progress)
        return replace(result, files=(*files, request.output / LEDGER), repro=repro)


def _workbench(check: CheckRequest, folder: Path, progress: Progress) -> Workbench:
    from trtconv.heal.workbench import EngineWorkbench

    return EngineWorkbench(check, folder, progress)


def _repro(request: HealRequest, diagnosis: Diagnosis, progress: Progress) -> Path | None:
    """The smallest part that fails by itself; a mistake that needs its surroundings leaves none."""
    from trtconv.check.repro.cut import make_repro

    progress.stage("repro")
    try:
        repro = make_repro(
            request.check, request.output / REPRO, kind="engine", precision=diagnosis.precision, progress=progress
        )
    except TrtconvError as error:
        progress.warn(f"no repro was cut: {error.message}")
        return None
    return repro.folder if repro is not None else None
