"""Variants of an engine, each a set of files of its own: rewritten where that is asked for, built, proved, timed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Profile
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.artifacts import beside, manifest_path
from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.model.file import load_model, tensor_spec
from trtconv.core.model.provenance import origin_of, rule_of
from trtconv.core.precision import HALF_NAMES, TF32
from trtconv.core.progress import Progress
from trtconv.core.report import OutputComparison
from trtconv.core.requests import BuildRequest, CheckRequest, RewriteRequest
from trtconv.core.requests.build import is_on
from trtconv.core.shape_space.space import DimRange, ShapeSpace, space_of_axes
from trtconv.heal.trial import CureTrial, Diagnosis, Variant
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.reference import read_samples

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from trtconv.core.report import CheckReport

    Array = np.ndarray[Any, np.dtype[Any]]

# Of a pair of nodes that only changes types, the name is not in the graph that is rewritten again.
NOT_REWRITTEN = ("Cast", "Constant", "QuantizeLinear", "DequantizeLinear")
ALONE = "main graph"


class EngineWorkbench:
    """Builds as the engine's manifest says, with what a variant changes. All files lie below `folder`."""

    def __init__(self, check: CheckRequest, folder: Path, progress: Progress) -> None:
        from trtconv.check.compare.layer_check import model_of
        from trtconv.check.compare.reference_fit import find_reference

        self._check, self._folder, self._progress = check, folder, progress
        self._engine = check.subject
        self._manifest = read_engine_manifest(self._engine)
        self._model = model_of(self._engine, self._manifest)
        self._reference = find_reference(self._engine, check.reference)
        self._count = 0
        self._seconds: dict[Path, float | None] = {}

    def _failure(self) -> OutputComparison:
        """Where the engine fails. Raises where it does not, or where its graph is wrong as well."""
        from trtconv.check import check_model

        report = check_model(self._check, self._progress)
        failed = first_failure(report.comparisons)
        if failed is None:
            reasons = "; ".join(f.message for f in report.errors)
            raise InvalidRequestError(
                f"'{self._engine}' has nothing to heal: {reasons or 'it equals its original at every point'}",
                hint="leave --heal out",
            )
        graph = check_model(replace(self._check, subject=self._model, reference=self._reference), self._progress)
        wrong = first_failure(graph.comparisons)
        if wrong is not None:
            raise AccuracyError(
                f"the graph '{self._model}' is wrong itself: {describe_failure(wrong)}",
                hint="healing is for engines; see `trtconv check` of the graph",
            )
        return failed

    def diagnose(self) -> Diagnosis:
        """The first tensor that differs, or the fusion that does, by `check --layers` at a point that fails."""
        from trtconv.check.compare.layer_check import check_layers
        from trtconv.check.compare.layers import describe_layers

        failed = self._failure()
        layers = check_layers(
            self._engine,
            self._reference,
            self._check.tolerance,
            point=failed.point.split(" ")[0],
            plugins=self._check.plugins,
            progress=self._progress,
        )
        tensor = layers.first_off.tensor if layers.first_off is not None else layers.fused
        model = load_model(self._model)
        capabilities = backend_of(self._engine).capabilities()
        base = Diagnosis(
            precision=self._manifest.precision,
            tf32=is_on(self._manifest.options.get(TF32.name)),
            groups=half_modules(model, self._manifest.precision),
            sources=capabilities.tactic_sources,
            words=" ".join(describe_layers(layers)[:1]),
            generation=capabilities.generation,
        )
        if tensor is None:
            return replace(base, words=describe_failure(failed))
        made_by = {o: n for n in model.graph.node for o in n.output}[tensor.name]
        return replace(
            base,
            node=tensor.node,
            tensor=tensor.name,
            fused=layers.first_off is None,
            rule=rule_of(made_by),
            forms=self._forms_of(made_by),
            source=tensor.origin.source,
        )

    def try_variant(self, variant: Variant) -> CureTrial:
        """As `Workbench` says."""
        self._count += 1
        folder = self._folder / f"{self._count}"
        folder.mkdir()
        self._progress.phase(variant.what)
        try:
            engine = self._built(variant, folder)
            report = self._proved(engine)
        except TrtconvError as error:
            return CureTrial(variant, False, error.message)
        failed = first_failure(report.comparisons)
        if failed is not None or not report.passed:
            reason = describe_failure(failed) if failed else "; ".join(f.message for f in report.errors)
            return CureTrial(variant, False, reason)
        return CureTrial(variant, True, "", self._timed(engine), folder)

    def baseline_seconds(self) -> float | None:
        """As `Workbench` says."""
        return self._timed(self._engine)

    def _built(self, variant: Variant, folder: Path) -> Path:
        from trtconv.build import build_engine

        model = self._copied(folder)
        if variant.rewrites:
            self._rewritten(variant, model)
        options = {**dict(self._manifest.options), **dict(variant.options)}
        request = BuildRequest(
            model,
            folder / self._engine.name,
            profiles=profile_spaces(load_model(model), self._manifest.profiles),
            backend=self._manifest.backend,
            precision=variant.precision or self._manifest.precision,
            opt_level=self._manifest.opt_level if variant.opt_level is None else variant.opt_level,
            workspace=self._manifest.workspace,
            plugins=self._check.plugins,
            options=tuple(options.items()),
        )
        build_engine(request, self._progress)
        return request.output

    def _copied(self, folder: Path) -> Path:
        """The set's files but for the engine and its reports: each variant is a complete set."""
        stem = beside(self._engine, "").name
        left_out = {self._engine.name, manifest_path(self._engine).name}
        for path in self._engine.parent.glob(f"{stem}.*"):
            if path.is_file() and path.name not in left_out and ".report." not in path.name:
                shutil.copyfile(path, folder / path.name)
        return folder / self._model.name

    def _forms_of(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """The rules for the node's operator that its graph was rewritten without; none where that is not on record."""
        try:
            return unused_rules(node.op_type, self._recorded_rewrite(self._model))
        except InvalidRequestError:
            return ()

    def _recorded_rewrite(self, model: Path) -> RewriteRequest:
        """The request that wrote `model`, by the ledger beside it. Raises InvalidRequestError where there is none."""
        from trtconv.core.ledger.options import same_rewrite
        from trtconv.core.ledger.reading import read_ledger

        ledger, exported = beside(model.with_name(self._engine.name), ".rewrites.json"), beside(model, ".onnx")
        if exported == model or not exported.exists() or not ledger.exists():
            raise InvalidRequestError("there is no exported model with a ledger beside the engine to rewrite again")
        return same_rewrite(read_ledger(ledger), exported, model)

    def _rewritten(self, variant: Variant, model: Path) -> None:
        from trtconv.rewrite import rewrite_model

        request = self._recorded_rewrite(model)
        if request.quantised:
            raise UnsupportedError("rewriting a quantised graph again needs its data: `trtconv tune` has it")
        rewrite_model(
            replace(
                request,
                skip=(*(name for name in request.skip if name not in variant.also), *variant.skip),
                also=(*(name for name in request.also if name not in variant.skip), *variant.also),
                keep_fp32=(*request.keep_fp32, *variant.keep_fp32),
                precision=variant.precision or request.precision,
            ),
            self._progress,
        )
        if model.read_bytes() == self._model.read_bytes():
            raise UnsupportedError("the graph is the same")

    def _proved(self, engine: Path) -> CheckReport:
        from trtconv.check import check_model

        request = replace(self._check, subject=engine, reference=self._reference_in(engine.parent), sources_known=True)
        return check_model(request, self._progress)

    def _reference_in(self, folder: Path) -> Path:
        path = folder / self._reference.name
        return path if path.exists() else self._reference

    def _timed(self, engine: Path) -> float | None:
        """The median at the largest sample inside the profiles; None where nothing can be measured."""
        from trtconv.backends.runtime.latency import measure_engine
        from trtconv.check.compare.reference_fit import within_profiles

        if engine not in self._seconds:
            self._seconds[engine] = None
            try:
                session = backend_of(engine).load(engine, plugins=self._check.plugins, code=self._check.code)
            except TrtconvError:
                return None
            try:
                inside = [s.inputs for s in read_samples(self._reference) if within_profiles(s, session.profiles)]
                largest: Mapping[str, Array] = max(inside, key=lambda i: sum(a.size for a in i.values()))
                self._seconds[engine] = measure_engine(session, largest, point="largest").device.median
            except (TrtconvError, ValueError) as error:
                self._progress.note(f"'{engine.name}' was not timed: {error}")
            finally:
                session.close()
        return self._seconds[engine]


def unused_rules(op_type: str, request: RewriteRequest) -> tuple[str, ...]:
    """The built-in rules for an operator that a rewrite left out, or did not need for its target; no plugins."""
    from trtconv.rewrite import list_rules

    return tuple(
        rule.name
        for rule in list_rules()
        if op_type in rule.ops and not rule.plugin and not rule.native_of
        if rule.name not in request.also
        if rule.name in request.skip
        or (request.only and rule.name not in request.only)
        or not rule.needed(request.target)
        or (rule.precisions and request.precision not in rule.precisions)
    )


def half_modules(model: onnx.ModelProto, precision: str) -> dict[str, tuple[str, ...]]:
    """The nodes of a typed graph by module, in order; empty where it is in FP32."""
    groups: dict[str, list[str]] = {}
    for node in model.graph.node if precision in HALF_NAMES else ():
        if node.name and node.op_type not in NOT_REWRITTEN:
            groups.setdefault(origin_of(node).module or ALONE, []).append(node.name)
    return {name: tuple(nodes) for name, nodes in groups.items()}


def profile_spaces(model: onnx.ModelProto, profiles: tuple[Profile, ...]) -> tuple[ShapeSpace, ...]:
    """The profiles of an engine in the names of the model's dims."""
    specs = [tensor_spec(v) for v in model.graph.input]
    spaces = []
    for profile in profiles:
        axes = ((dim, axis, profile[s.name]) for s in specs if s.name in profile for axis, dim in enumerate(s.dims))
        spaces.append(space_of_axes((dim, DimRange(*(shape[axis] for shape in shapes))) for dim, axis, shapes in axes))
    return tuple(spaces)
