"""Command-line values laid over a config, as the frozen requests that the rooms take."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trtconv.core.config import CheckSection, Config, InputSection, read_config
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_range, parse_space
from trtconv.core.sizes import parse_bytes
from trtconv.core.targets import parse_target
from trtconv.core.tensors import TensorSpec, parse_tensor, require_ranges
from trtconv.core.tolerance import Tolerance
from trtconv.pipeline import ConvertRequest, default_target, lay_out


def load_config(path: Path | None) -> Config:
    """The config file, or an empty config."""
    return read_config(path) if path else Config()


def module_source(config: Config, module: str | None, values: Mapping[str, Any]) -> ModuleSource:
    """Where the module comes from; paths of the config are seen from its folder, paths of the CLI from here."""
    section = config.model
    if not (module or section.module):
        raise InvalidRequestError(
            "no module is given", hint="name one: path/to/file.py:factory, or --config trtconv.toml"
        )
    args = {**section.args, **dict(_argument(a) for a in values.get("args") or ())}
    seed = section.seed if values.get("seed") is None else values["seed"]
    if not 0 <= seed < 2**63:
        raise InvalidRequestError(f"the seed {seed} is no seed", hint="write a number from 0 up")
    # The reader of `weights` and `sample` sees relative paths from `base`; what the CLI gives is seen from here.
    base, config_base = (Path(), config.base) if module else (config.base, Path())
    weights = config_base / section.weights if section.weights else None
    if values.get("weights"):
        weights = Path(values["weights"]).absolute()
    sample = _seen_from(config_base, section.sample) if section.sample else None
    if values.get("sample"):
        sample = _seen_from(Path.cwd(), values["sample"])
    return ModuleSource(
        spec=module or section.module,
        args=tuple(args.items()),
        weights=weights,
        sample=sample,
        seed=seed,
        base=base,
    )


def _seen_from(folder: Path, spec: str) -> str:
    """`file.py:function` with the folder in front; `package.module:function` stays."""
    return str(folder / spec) if spec.rpartition(":")[0].endswith(".py") else spec


def _argument(text: str) -> tuple[str, Any]:
    key, eq, value = text.partition("=")
    if not eq or not key.isidentifier():
        raise InvalidRequestError(f"cannot read the argument '{text}'", hint="write --arg KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def tensor_specs(config: Config, texts: Sequence[str]) -> tuple[TensorSpec, ...]:
    """Inputs of the CLI, or those of the config when the CLI gives none; one given on both sides is the CLI's."""
    parsed = [parse_tensor(t) for t in texts]
    for names in ([s.name for s in parsed], [i.name for i in config.input]):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise InvalidRequestError(f"the input '{twice}' is given twice", hint="keep one of them")
    given = {s.name: s for s in parsed}
    specs = tuple(given.pop(i.name) if i.name in given else _spec(i) for i in config.input)
    return specs + tuple(given.values())


def _spec(section: InputSection) -> TensorSpec:
    return TensorSpec(section.name, parse_dtype(section.dtype), tuple(section.dims), section.range)


def shape_space(config: Config, texts: Sequence[str]) -> ShapeSpace:
    """The ranges of the config with those of the CLI laid over them."""
    recorded = ShapeSpace(tuple((n, parse_range(str(r), n)) for n, r in config.dynamic.items()))
    return recorded.merged(parse_space(t for t in texts if t))


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


def export_request(config: Config, module: str | None, output: Path, values: Mapping[str, Any]) -> ExportRequest:
    """What `trtconv export` asks for."""
    inputs = tensor_specs(config, values.get("inputs") or ())
    space = shape_space(config, values.get("dynamic") or ())
    require_ranges(inputs, space)
    return ExportRequest(
        source=module_source(config, module, values),
        inputs=inputs,
        space=space,
        output=output,
        exporter=values.get("exporter") or config.export.exporter,
        opset=values.get("opset") or config.export.opset,
        tolerance=tolerance(config.check, values.get("rtol"), values.get("atol")),
        align=bool(values.get("align")) or (config.export.align and not values.get("pad_to_multiple")),
        pad_to_multiple=values.get("pad_to_multiple") or ("" if values.get("align") else config.export.pad_to_multiple),
    )


def rewrite_request(
    config: Config, model: Path, output: Path, target: str, values: Mapping[str, Any]
) -> RewriteRequest:
    """What `trtconv rewrite` asks for; `target` is used when neither side names one."""
    section = config.rewrite
    return RewriteRequest(
        model=model,
        output=output,
        target=parse_target(values.get("target") or section.target or target),
        only=tuple(values.get("only") or section.only),
        skip=tuple(values.get("skip") or section.skip),
        proof=section.proof and not values.get("no_proof"),
        rule_files=tuple(values.get("rule_files") or (config.base / f for f in section.rules)),
        plugins=values.get("plugins") or section.plugins,
        plugin_libraries=tuple(values.get("plugin_libraries") or (config.base / p for p in config.build.plugins)),
        keep_fp32=tuple(values.get("keep_fp32") or section.keep_fp32),
    )


def build_request(
    config: Config, model: Path, output: Path, dynamic: ShapeSpace | None, values: Mapping[str, Any]
) -> BuildRequest:
    """What `trtconv build` asks for."""
    section = config.build
    workspace = values.get("workspace") or section.workspace
    listed = tuple(w.strip() for w in (values.get("compute_capability") or "").split(",") if w.strip())
    profiles = tuple(values.get("profiles") or section.profiles)
    level = values.get("opt_level")
    return BuildRequest(
        model=model,
        output=output,
        dynamic=dynamic,
        profiles=tuple(parse_space([p]) for p in profiles),
        inputs=tuple(parse_tensor(t) for t in values.get("inputs") or ()),
        backend=values.get("backend") or section.backend,
        precision=values.get("precision") or section.precision,
        workspace=parse_bytes(workspace) if workspace else None,
        timing_cache=values.get("timing_cache")
        or (config.base / section.timing_cache if section.timing_cache else None),
        opt_level=section.opt_level if level is None else level,
        compute_capabilities=listed or tuple(section.compute_capability),
        plugins=tuple(values.get("plugin_libraries") or (config.base / p for p in section.plugins)),
        options=tuple({**section.options, **dict(_option(t) for t in values.get("build_options") or ())}.items()),
        isolated=True,
    )


def _option(text: str) -> tuple[str, str]:
    key, eq, value = text.partition("=")
    if not eq or not key:
        raise InvalidRequestError(f"cannot read the build option '{text}'", hint="write --option KEY=VALUE")
    return key.strip(), value.strip()


def convert_request(
    config: Config, module: str | None, directory: Path, static: bool, values: Mapping[str, Any]
) -> ConvertRequest:
    """What `trtconv convert` asks for; every file goes into `directory`."""
    from trtconv.check.gate.judge import read_gate

    # The export request comes first: it names what is wrong on the command line before a backend is looked for.
    export = export_request(config, module, directory / "model.onnx", values)
    backend = values.get("backend") or config.build.backend
    target = values.get("target") or config.rewrite.target or default_target(backend)
    dynamic = None if static or not config.build.dynamic else ShapeSpace()
    build = build_request(config, directory, directory, dynamic, {**values, "inputs": ()})
    rewrite = rewrite_request(config, directory, directory, target, values)
    return lay_out(
        ConvertRequest(
            export=export,
            rewrite=dataclasses.replace(rewrite, precision=build.precision),
            build=build,
            check=CheckRequest(
                subject=directory,
                tolerance=export.tolerance,
                outputs=output_tolerances(config.check, export.tolerance),
                plugins=build.plugins,
            ),
            gate=read_gate(config.check.budgets, config.check.baseline, None),
        ),
        directory,
    )
