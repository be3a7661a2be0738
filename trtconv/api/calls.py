"""`convert`, `check`, `assert_equal` and `load`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.api.error_notes import with_notes
from trtconv.api.inputs import Dims, Inputs, Ranges, folder_of, input_texts, path_of, progress_or_silence, range_texts
from trtconv.api.keywords import command_line
from trtconv.api.results import Conversion, Verdict, conversion
from trtconv.core.errors import InvalidRequestError
from trtconv.core.progress import Progress
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, LiveModule, ModuleSource, RewriteRequest
from trtconv.frontend.options import ConfigOption, ConversionOptions, GateOptions, ToleranceOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trtconv.api.keywords import CheckKeywords, ConvertKeywords, EqualKeywords
    from trtconv.check.session import Session
    from trtconv.core.trust.trust import EngineCode, Trust


class TorchModule(Protocol):
    """An `nn.Module`, without importing torch to say so."""

    training: bool

    def state_dict(self) -> Any:
        """Its weights."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute."""


Module = TorchModule | str | PathLike[str]
# torch's exporters and where a process prints are one for all threads: calls from several are done one after another.
_TURN = RLock()
# c10/core/GeneratorImpl.h: default_rng_seed_val
_FRESH_SEED = 67280421310721
_ALWAYS = (ModuleSource, ToleranceOptions, ConfigOption)
_CONVERT = (ExportRequest, BuildRequest, RewriteRequest, ConversionOptions, *_ALWAYS)
_CHECK = (CheckRequest, GateOptions, *_ALWAYS)


@with_notes(_CONVERT)
def convert(
    model: Module,
    *,
    inputs: Inputs | None = None,
    dynamic: Ranges | None = None,
    dims: Dims | None = None,
    output: str | PathLike[str] = "out",
    progress: Progress | None = None,
    **options: Unpack[ConvertKeywords],
) -> Conversion:
    """Export, rewrite, build and check a module, as `trtconv convert` does; all files go into the folder `output`.

    `model` is an `nn.Module` as it stands (it is run in eval mode on the CPU, and put back as it was; nothing is
    pickled), or what the command line takes: "net.py:factory", "package.module:factory", "program.pt2".
    `inputs` are texts by name, {"images": "float32[N,3,H,W]"}, or example tensors, whose dims are fixed unless `dims`
    names them: dims={"images": "N,3,H,W"}. `dynamic` are the ranges of named dims as min:opt:max, {"N": "1:1:4"}.
    `options` are those of `trtconv convert`, with underscores: target="tensorrt==10", opt_level=3, config=...;
    `trtconv help python` lists them.

    Raises AccuracyError when a step changes what the module computes, UnsupportedError when the target lacks a node,
    OverBudgetError, InvalidRequestError for arguments that do not fit, MissingDependencyError.
    """
    from trtconv.frontend.conversion import ConversionOrder, run_conversion

    keywords: dict[str, Any] = dict(options)
    with requested_module(model) as module:
        keywords["input"] = input_texts(inputs, dims, lambda: parameters(module)) or None
        keywords |= {"dynamic": range_texts(dynamic) or None, "output": folder_of(output)}
        line = command_line("convert", _CONVERT, keywords)
        return conversion(*run_conversion(ConversionOrder(module, line), progress_or_silence(progress)))


@with_notes(_CHECK)
def check(
    subject: str | PathLike[str] | Conversion,
    *,
    against: Module | None = None,
    progress: Progress | None = None,
    **options: Unpack[CheckKeywords],
) -> Verdict:
    """Compare an ONNX file or an engine with what the module computed, as `trtconv check` does.

    `against` runs a module, live or named, instead of reading the reference file that lies beside the subject. An
    engine that this machine cannot run is a verdict that did not pass, not an error.

    Raises InvalidRequestError for a missing or foreign file and for arguments that do not fit.
    """
    from trtconv.frontend.assemble import check_gate, check_request, load_config
    from trtconv.pipeline import check as run_check

    line = command_line("check", _CHECK, options)
    config = load_config(line.of(ConfigOption).config)
    path = subject.engine if isinstance(subject, Conversion) else path_of(subject, "the subject of a check")
    with requested_module(against) as module:
        request = check_request(config, path, module, line)
        report = run_check(request, progress_or_silence(progress), gate=check_gate(config, line), heat=True)
    return Verdict(report)


@with_notes(_CHECK)
def assert_equal(
    module: Module,
    artifact: str | PathLike[str] | Conversion,
    *,
    progress: Progress | None = None,
    **options: Unpack[EqualKeywords],
) -> Verdict:
    """Raise unless an ONNX file or an engine computes what the module computes, at every sample point.

    The sample points of an engine, and of a file of a conversion, are those of the reference beside it.

    Raises DifferenceError, which is an AssertionError, with the outputs that differ; MissingDependencyError for an
    engine that this machine cannot run; and as `check` does.
    """
    verdict = check(artifact, against=module, progress=progress, **options)
    verdict.raise_if_failed()
    return verdict


@with_notes(())
def load(
    path: str | PathLike[str] | Conversion,
    *,
    plugins: Sequence[str | PathLike[str]] = (),
    foreign: bool = False,
    trust: Trust | None = None,
    code: EngineCode | None = None,
) -> Session:
    """Open an engine (on this machine's GPU) or an ONNX file (ONNX Runtime on the CPU) as a callable.

    `load("out/model.engine")(images=array)` returns the outputs by name, as NumPy arrays. `foreign` takes an engine
    that trtconv did not build. With `trust` the signature of the whole set is verified before one byte of the engine
    is deserialised (UntrustedError else); `code` names code inside an engine that may run. Raises
    MissingDependencyError for an engine where there is no GPU or no TensorRT, InvalidRequestError for a file that is
    neither.
    """
    from trtconv.check.session import load as open_session
    from trtconv.core.trust.trust import NO_CODE

    file = path.engine if isinstance(path, Conversion) else path_of(path, "what is loaded")
    session = open_session(
        file, plugins=tuple(path_of(p, "a plugin") for p in plugins), foreign=foreign, trust=trust, code=code or NO_CODE
    )
    # Past `load` and what adds notes to its errors.
    session.tell_warnings(stacklevel=4)
    return session


@contextmanager
def requested_module(model: Module | None) -> Iterator[str | LiveModule | None]:
    """The module as requests name it, in this thread's turn; a live one is put back in the end."""
    from trtconv.export.lasting.process_settings import own_settings

    with _TURN, _random_state_put_back(), own_settings():
        if model is None or isinstance(model, (str, PathLike)):
            yield None if model is None else str(model)
            return
        if not hasattr(model, "state_dict"):
            raise InvalidRequestError(
                f"a module must be an nn.Module or a text, got {type(model).__name__}",
                hint='pass the module itself, or "path/to/file.py:factory"',
            )
        from trtconv.export.live import borrowed, live_module

        with borrowed(model):
            yield live_module(model)


@contextmanager
def _random_state_put_back() -> Iterator[None]:
    """torch's own generators as they were before the block, which seeds them; fresh where torch is loaded in it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with torch.random.fork_rng(devices=list(devices)):
            yield
        return
    try:
        yield
    finally:
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(_FRESH_SEED)


def parameters(module: str | LiveModule | None) -> Sequence[str]:
    """The names of a live module's parameters. Raises InvalidRequestError for another one."""
    if not isinstance(module, LiveModule):
        raise InvalidRequestError("the inputs have no names", hint='name them: inputs={"images": tensor}')
    from trtconv.export.live import parameter_names

    return parameter_names(module.module)
