"""Command-line values laid over a config, as the frozen requests that the rooms take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trtconv.cli.command_line import CommandLine
from trtconv.cli.options import ToleranceOptions
from trtconv.core.config import CheckSection, Config, read_config
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import parse_target
from trtconv.core.tensors import TensorSpec, require_ranges
from trtconv.core.tolerance import DEFAULT_TOLERANCE, Tolerance
from trtconv.pipeline import ConvertRequest, default_target, lay_out

# What a conversion tries of its own accord: the kinds of faults once each, within a few seconds.
FAULTS_OF_CONVERT, SECONDS_OF_CONVERT = 20, 5.0


def load_config(path: Path | None) -> Config:
    """The config file, or an empty config."""
    return read_config(path) if path else Config()


def module_source(config: Config, module: str | None, line: CommandLine) -> ModuleSource:
    """Where the module comes from; paths of the config are seen from its folder, paths of the CLI from here."""
    if not (module or config.model.module):
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


def tolerance(section: CheckSection, rtol: float | None, atol: float | None) -> Tolerance:
    """The tolerance of the CLI, else of the config, else the default; a looser one in the config needs a `why`."""
    loose = [n for n in ("rtol", "atol") if (getattr(section, n) or 0.0) > getattr(DEFAULT_TOLERANCE, n)]
    if loose and not section.why:
        raise InvalidRequestError(
            f"[check] {loose[0]} is looser than the default {getattr(DEFAULT_TOLERANCE, loose[0])}",
            hint='add why = "..." beside it, so that the next reader knows',
        )
    named = any(v is not None for v in (rtol, atol, section.rtol, section.atol))
    return Tolerance(
        rtol=next(v for v in (rtol, section.rtol, DEFAULT_TOLERANCE.rtol) if v is not None),
        atol=next(v for v in (atol, section.atol, DEFAULT_TOLERANCE.atol) if v is not None),
        # What is named holds for a half precision engine too, also where it is the default of an FP32 one.
        why=section.why or ("named by the user" if named else ""),
    )


def output_tolerances(section: CheckSection, default: Tolerance) -> tuple[tuple[str, Tolerance], ...]:
    """Tolerances of single outputs; one looser than the default needs a `why`."""
    found = []
    for name, out in section.outputs.items():
        chosen = Tolerance(
            default.rtol if out.rtol is None else out.rtol,
            default.atol if out.atol is None else out.atol,
            out.cosine,
            out.mismatched,
            out.why,
        )
        looser = chosen.rtol > default.rtol or chosen.atol > default.atol or chosen.mismatched > default.mismatched
        if looser and not out.why:
            raise InvalidRequestError(
                f"[check.outputs.{name}] is looser than the default",
                hint='add why = "..." so that the next reader knows',
            )
        found.append((name, chosen))
    return tuple(found)


def tolerance_of(config: Config, line: CommandLine) -> Tolerance:
    """The tolerance that the command line and the config ask for."""
    options = line.of(ToleranceOptions)
    return tolerance(config.check, options.rtol, options.atol)


def export_request(config: Config, module: str | None, output: Path, line: CommandLine) -> ExportRequest:
    """What `trtconv export` asks for."""
    request = line.request(
        ExportRequest,
        config,
        # What the command line names is read first: its mistakes are told before those of the module.
        source=ModuleSource(""),
        output=output,
        tolerance=DEFAULT_TOLERANCE,
    )
    require_ranges(request.inputs, request.space)
    source, tolerance = module_source(config, module, line), tolerance_of(config, line)
    return replace(request, source=source, tolerance=tolerance, config=config.path)


def rewrite_request(config: Config, model: Path, output: Path, line: CommandLine) -> RewriteRequest:
    """What `trtconv rewrite` asks for; without a target on either side, the one that fits what builds here."""
    return line.request(
        RewriteRequest, config, model=model, output=output,
        fallbacks={"target": lambda: parse_target(default_target(config.build.backend))},
    )  # fmt: skip


def build_request(
    config: Config, model: Path, output: Path, dynamic: ShapeSpace | None, line: CommandLine
) -> BuildRequest:
    """What `trtconv build` asks for."""
    return line.request(BuildRequest, config, model=model, output=output, dynamic=dynamic, isolated=True)


def convert_request(
    config: Config, module: str | None, directory: Path, static: bool, line: CommandLine
) -> ConvertRequest:
    """What `trtconv convert` asks for; every file goes into `directory`."""
    from trtconv.check.gate.judge import read_gate

    # The export request comes first: it names what is wrong on the command line before a backend is looked for.
    export = export_request(config, module, directory / "model.onnx", line)
    dynamic = None if static or not config.build.dynamic else ShapeSpace()
    build = line.request(
        BuildRequest, config, model=directory, output=directory, dynamic=dynamic, inputs=(), isolated=True
    )
    rewrite = line.request(
        RewriteRequest, config, model=directory, output=directory,
        # The export has seen to these.
        space=ShapeSpace(), align=False, pad_to_multiple="",
        fallbacks={"target": lambda: parse_target(default_target(build.backend))},
    )  # fmt: skip
    check = CheckRequest(
        subject=directory,
        tolerance=export.tolerance,
        outputs=output_tolerances(config.check, export.tolerance),
        plugins=build.plugins,
        power=FAULTS_OF_CONVERT if config.check.power is None else config.check.power,
        power_seconds=SECONDS_OF_CONVERT if config.check.power is None else float("inf"),
    )
    gate = read_gate(config.check.budgets, config.check.baseline, None)
    return lay_out(ConvertRequest(export=export, rewrite=rewrite, build=build, check=check, gate=gate), directory)
