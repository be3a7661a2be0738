"""Command-line values laid over a config, as the frozen requests that the rooms take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.config import CheckSection, Config, read_config
from trtconv.core.errors import InvalidRequestError
from trtconv.core.option import described_fields
from trtconv.core.precision import AUTO, FP32
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, LiveModule, ModuleSource, RewriteRequest
from trtconv.core.requests.export import ALIGN_FLAG, PAD_FLAG
from trtconv.core.requests.tune import ContractRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target, parse_target
from trtconv.core.tensors import TensorSpec, require_ranges
from trtconv.core.tolerance import Tolerance
from trtconv.foreign.request import ForeignRequest
from trtconv.frontend.command_line import CommandLine, recorded_value
from trtconv.frontend.options import GateOptions, ToleranceOptions
from trtconv.pipeline import ConvertRequest, default_target, installed_target, lay_out
from trtconv.pipeline.foreign import is_onnx

if TYPE_CHECKING:
    from trtconv.check.gate.judge import Gate
    from trtconv.pipeline.refit import RefitRequest
    from trtconv.tune.room import TuneRequest

# What a conversion tries of its own accord: the kinds of faults once each, within a few seconds.
FAULTS_OF_CONVERT, SECONDS_OF_CONVERT = 20, 1.0


def load_config(path: Path | None) -> Config:
    """The config file, or an empty config."""
    return read_config(path) if path else Config()


def module_source(config: Config, module: str | LiveModule | None, line: CommandLine) -> ModuleSource:
    """Where the module comes from; paths of the config are seen from its folder, paths of the CLI from here.

    A live module has its arguments and weights in it: those of the config are for the module that the config names.
    """
    if isinstance(module, LiveModule):
        described = described_fields(ModuleSource)
        surplus = next((described[n].name for n in ("args", "weights") if line.has(described[n])), None)
        if surplus:
            raise InvalidRequestError(f"'{surplus}' is for a module that a file makes", hint="leave it out")
        return line.request(ModuleSource, config, spec=module.name, live=module, args=(), weights=None)
    if not (module or config.model.module):
        if config.path:
            raise InvalidRequestError(
                f"'{config.path}' names no module", hint='write [model] and module = "file.py:factory" into it'
            )
        raise InvalidRequestError(
            "no module is given", hint="name one: path/to/file.py:factory, or --config trtconv.toml"
        )
    # The reader of a source sees relative paths from `base`: here the paths of the config, where it names the module.
    source_base, config_base = (Path(), config.base) if module else (config.base, Path())
    spec = module or config.model.module
    return line.request(ModuleSource, config, seen_from=config_base, spec=spec, base=source_base)


def input_specs(config: Config, line: CommandLine | None = None) -> tuple[TensorSpec, ...]:
    """Inputs of the config with those of the command line laid over them."""
    specs: tuple[TensorSpec, ...] = (line or CommandLine()).field_value(ExportRequest, "inputs", config)
    return specs


def shape_space(config: Config, line: CommandLine | None = None) -> ShapeSpace:
    """The ranges of the config with those of the command line laid over them."""
    space: ShapeSpace = (line or CommandLine()).field_value(ExportRequest, "space", config)
    return space


# A limit beyond these is looser than the noise floor of any sound network and needs a reason in the config.
LOOSE = 1e-4


def tolerance(section: CheckSection, rtol: float | None, atol: float | None) -> Tolerance | None:
    """The limits that the CLI names, else those of the config, None where neither does; a loose one needs a `why`."""
    loose = [n for n in ("rtol", "atol") if (getattr(section, n) or 0.0) > LOOSE]
    if loose and not section.why:
        raise InvalidRequestError(
            f"[check] {loose[0]} is looser than {LOOSE:g}",
            hint='add why = "..." beside it, so that the next reader knows',
        )
    rtol = section.rtol if rtol is None else rtol
    atol = section.atol if atol is None else atol
    return None if rtol is None and atol is None else Tolerance(rtol, atol, why=section.why)


def output_tolerances(section: CheckSection, default: Tolerance | None) -> tuple[tuple[str, Tolerance], ...]:
    """The limits that are named for single outputs; one looser than the default needs a `why`."""
    limits = []
    for name, out in section.outputs.items():
        named = Tolerance(out.rtol, out.atol, out.cosine, out.mismatched, out.why)
        usual = default or Tolerance()
        looser = (
            (named.rtol or 0.0) > (LOOSE if usual.rtol is None else usual.rtol)
            or (named.atol or 0.0) > (LOOSE if usual.atol is None else usual.atol)
            or (named.mismatched or 0.0) > 0.0
        )
        if looser and not out.why:
            raise InvalidRequestError(
                f"[check.outputs.{name}] is looser than the default",
                hint='add why = "..." so that the next reader knows',
            )
        limits.append((name, named))
    return tuple(limits)


def tolerance_of(config: Config, line: CommandLine) -> Tolerance | None:
    """The tolerance that the command line and the config ask for."""
    options = line.of(ToleranceOptions)
    return tolerance(config.check, options.rtol, options.atol)


def export_request(config: Config, module: str | LiveModule | None, output: Path, line: CommandLine) -> ExportRequest:
    """What `trtconv export` asks for."""
    request = line.request(
        ExportRequest,
        config,
        # What the command line names is read first: its mistakes are told before those of the module.
        source=ModuleSource(""),
        output=output,
        tolerance=None,
    )
    spec = "" if isinstance(module, LiveModule) else module or config.model.module
    if not request.inputs and spec.endswith(".pt2"):
        from trtconv.export.module.source import require_torch
        from trtconv.export.signature.program_inputs import program_inputs

        require_torch()
        inputs, space = program_inputs((Path() if module else config.base) / spec)
        request = replace(request, inputs=inputs, space=space.merged(request.space))
    require_ranges(request.inputs, request.space)
    source, tolerance = module_source(config, module, line), tolerance_of(config, line)
    return replace(request, source=source, tolerance=tolerance, config=config.path)


def original_request(
    config: Config, module: str | LiveModule | None, output: Path, line: CommandLine
) -> ExportRequest | ForeignRequest:
    """What a conversion begins with: the export of a module, or a foreign ONNX file as it is.

    Raises InvalidRequestError for options that a file has no use for.
    """
    spec = "" if isinstance(module, LiveModule) else module or config.model.module
    if not is_onnx(spec):
        return export_request(config, module, output, line)
    useless = {**described_fields(ModuleSource), **described_fields(ExportRequest)}
    for name in ("seed", "inputs", "space", "output_names"):
        del useless[name]
    for option in useless.values():
        if line.has(option):
            remedy = "run `trtconv rewrite` with it first, and convert what that writes"
            raise InvalidRequestError(
                f"{option.flag} is for modules, and '{spec}' is an ONNX file",
                hint=remedy if option.flag in (ALIGN_FLAG, PAD_FLAG) else "leave it out",
            )
    return ForeignRequest(
        original=(Path() if module else config.base) / spec,
        output=output,
        inputs=input_specs(config, line),
        space=shape_space(config, line),
        tolerance=tolerance_of(config, line),
        seed=line.field_value(ModuleSource, "seed", config),
        config=config.path,
        output_names=line.field_value(ExportRequest, "output_names", config),
    )


def rewrite_request(
    config: Config, model: Path, output: Path, line: CommandLine, tell: Callable[[str], None] = lambda text: None
) -> RewriteRequest:
    """What `trtconv rewrite` asks for; without a target on either side, the one that fits what builds here.

    `tell` gets a note where nothing builds here and the target is a fixed one.
    """
    return line.request(
        RewriteRequest,
        config,
        model=model,
        output=output,
        fallbacks={"target": lambda: _installed_target(config.build.backend, tell)},
    )


def _installed_target(backend: str, tell: Callable[[str], None]) -> Target:
    target, note = installed_target(backend)
    if note:
        tell(note)
    return parse_target(target)


def _rewrite_of_export(
    config: Config, directory: Path, line: CommandLine, target: Callable[[], Target], **fields: Any
) -> RewriteRequest:
    """The rewrite of a model that an export writes, which has seen to its sizes."""
    sizes: dict[str, Any] = {"space": ShapeSpace(), "align": False, "pad_to_multiple": ""}
    return line.request(
        RewriteRequest, config, model=directory, output=directory, fallbacks={"target": target}, **sizes, **fields
    )


def build_request(
    config: Config, model: Path, output: Path, dynamic: ShapeSpace | None, line: CommandLine
) -> BuildRequest:
    """What `trtconv build` asks for."""
    return line.request(BuildRequest, config, model=model, output=output, dynamic=dynamic, isolated=True)


def tune_request(
    config: Config,
    module: str | LiveModule | None,
    directory: Path,
    line: CommandLine,
    tell: Callable[[str], None] = lambda text: None,
) -> TuneRequest:
    """What `trtconv tune` asks for; every file goes into `directory`."""
    from trtconv.tune.room import TuneRequest

    export = original_request(config, module, directory / "model.onnx", line)
    dynamic = ShapeSpace() if config.build.dynamic else None
    build = line.request(
        BuildRequest,
        config,
        model=directory,
        output=directory,
        dynamic=dynamic,
        inputs=(),
        isolated=True,
        precision=AUTO,
    )
    # The search chooses the precisions.
    rewrite = _rewrite_of_export(
        config,
        directory,
        line,
        lambda: _installed_target(build.backend, tell),
        precision=AUTO,
        rest=FP32.name,
        keep_fp32=(),
    )
    return TuneRequest(export, rewrite, build, line.request(ContractRequest, config), directory)


def check_request(config: Config, subject: Path, against: str | LiveModule | None, line: CommandLine) -> CheckRequest:
    """What `trtconv check` asks for; `against` is a module to run instead of a reference file."""
    limits = tolerance_of(config, line)
    source = module_source(config, against, line) if against else None
    outputs = output_tolerances(config.check, limits)
    return line.request(CheckRequest, config, subject=subject, against=source, tolerance=limits, outputs=outputs)


def check_gate(config: Config, line: CommandLine) -> Gate:
    """The budgets of the config, and the baseline and the earlier engine that the command line names."""
    from trtconv.check.gate.in_turn import InTurn
    from trtconv.check.gate.judge import read_gate

    options = line.of(GateOptions)
    if options.update_baseline and not options.baseline:
        raise InvalidRequestError("--update-baseline needs --baseline FILE", hint="name the file to write")
    limits = config.check
    in_turn = InTurn(options.baseline_engine, options.processes) if options.baseline_engine else None
    return read_gate(limits.budgets, limits.baseline, options.baseline, update=options.update_baseline, in_turn=in_turn)


def convert_request(
    config: Config, module: str | LiveModule | None, directory: Path, static: bool, line: CommandLine
) -> ConvertRequest:
    """What `trtconv convert` asks for; every file goes into `directory`."""
    from trtconv.check.gate.judge import read_gate

    # The export request comes first: it names what is wrong on the command line before a backend is looked for.
    export = original_request(config, module, directory / "model.onnx", line)
    dynamic = None if static or not config.build.dynamic else ShapeSpace()
    build = line.request(
        BuildRequest, config, model=directory, output=directory, dynamic=dynamic, inputs=(), isolated=True
    )
    if static and build.profiles:
        raise InvalidRequestError(
            "--static builds for the opt sizes, and --profile for a range", hint="leave one of them out"
        )
    rewrite = _rewrite_of_export(
        config,
        directory,
        line,
        lambda: parse_target(default_target(build.backend)),
        # TensorRT computes other constants from a norm, and new weights have no place in those.
        fold_norms=build.refittable,
    )
    power = recorded_value(described_fields(CheckRequest)["power"], config)
    check = CheckRequest(
        subject=directory,
        tolerance=export.tolerance,
        outputs=output_tolerances(config.check, export.tolerance),
        plugins=build.plugins,
        code=build.code,
        power=FAULTS_OF_CONVERT if power is None else power,
        power_seconds=SECONDS_OF_CONVERT if power is None else float("inf"),
    )
    gate = read_gate(config.check.budgets, config.check.baseline, None)
    return lay_out(ConvertRequest(export=export, rewrite=rewrite, build=build, check=check, gate=gate), directory)


def refit_request(config: Config, engine: Path, module: str | None, directory: Path, line: CommandLine) -> RefitRequest:
    """What `trtconv refit` asks for; inputs and sizes that are not named are those of the engine's model."""
    from trtconv.pipeline.refit import RefitRequest, recorded_interface

    inputs, space = recorded_interface(engine)
    export = original_request(config, module, directory / "model.onnx", line)
    export = replace(export, inputs=export.inputs or inputs, space=space.merged(export.space))
    return RefitRequest(engine, export, directory)
