"""`trtconv.tune`: the fastest engine that keeps a contract, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.api.calls import Module, parameters, requested_module
from trtconv.api.error_notes import with_notes
from trtconv.api.inputs import Dims, Inputs, Ranges, folder_of, input_texts, progress_or_silence, range_texts
from trtconv.api.keywords import command_line
from trtconv.api.results import framed
from trtconv.core.progress import Progress
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.frontend.options import ConfigOption, TuneOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trtconv.api import keywords
    from trtconv.tune.room import TuneResult

_TUNE = (ModuleSource, ExportRequest, ContractRequest, BuildRequest, RewriteRequest, TuneOptions, ConfigOption)
# What the search decides itself, or cannot do.
_WITHOUT = ("precision", "rest", "keep_fp32", "align", "pad_to_multiple")


@dataclass(frozen=True)
class Tuned:
    """The engine that ships, with its evidence. A contract that cannot be kept raises, so this one is kept."""

    result: TuneResult = field(repr=False)

    @property
    def directory(self) -> Path:
        """The folder with all files."""
        return self.result.folder

    @property
    def engine(self) -> Path:
        """The engine, or the ONNX file where this machine builds none."""
        files = {p.name: p for p in self.result.files}
        return self.directory / files.get("model.engine", files["model.trt.onnx"]).name

    @property
    def facts(self) -> Mapping[str, Any]:
        """The ledger `model.tune.json`: contract, candidates, sensitivities, what was chosen and how fast it is."""
        return self.result.facts

    def __str__(self) -> str:
        """The summary that `trtconv tune` prints."""
        from trtconv.frontend.tune_summary import tune_summary

        return str(tune_summary(self.result))

    def __repr__(self) -> str:
        return f"<trtconv.Tuned {self.directory}: {self.facts['chosen']['name']}>"

    def _repr_html_(self) -> str:
        return framed(f"trtconv: {self.directory}", (self.directory / "model.report.html").read_text(encoding="utf-8"))


@with_notes(_TUNE)
def tune(
    model: Module,
    *,
    inputs: Inputs | None = None,
    dynamic: Ranges | None = None,
    dims: Dims | None = None,
    output: str | PathLike[str] = "out",
    progress: Progress | None = None,
    **options: Unpack[keywords.TuneKeywords],
) -> Tuned:
    """Find the fastest engine that keeps a contract, as `trtconv tune` does; all files go into the folder `output`.

    `model`, `inputs`, `dynamic` and `dims` are those of `convert`; `data` is mandatory, and `metric` and `max_drop` are
    the contract: data="digits.npz", metric="top1", max_drop="0.5%", precisions="fp16,int8".

    Raises AccuracyError where the contract cannot be kept, OverBudgetError where nothing that keeps it is faster (then
    nothing is written), UnsupportedError, InvalidRequestError, MissingDependencyError.
    """
    from trtconv.frontend.assemble import load_config, tune_request
    from trtconv.tune.room import tune as run_tune

    values: dict[str, Any] = dict(options)
    with requested_module(model) as module:
        values["input"] = input_texts(inputs, dims, lambda: parameters(module)) or None
        values |= {"dynamic": range_texts(dynamic) or None, "output": folder_of(output)}
        line = command_line("tune", _TUNE, values, without=_WITHOUT)
        config = load_config(line.of(ConfigOption).config)
        own = line.of(TuneOptions)
        request = replace(tune_request(config, module, own.output, line), repeat=own.repeat)
        return Tuned(run_tune(request, progress_or_silence(progress)))
