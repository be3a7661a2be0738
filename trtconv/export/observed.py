"""The loaded module, and what it computes at the sample points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import AccuracyError, TrtconvError, UnsupportedError
from trtconv.core.progress import Progress
from trtconv.core.requests import ExportRequest
from trtconv.export.beneath import require_nothing_beneath
from trtconv.export.branches.callers import require_no_use_of_callers
from trtconv.export.lasting.files import FilesUsed, require_nothing_kept_in_files
from trtconv.export.lasting.first_calls import require_nothing_left_outside
from trtconv.export.lasting.notes import FirstState
from trtconv.export.module.noise.first_call import (
    UntouchedState,
    require_independent_of_first_call,
    require_no_values_of_first_call,
    require_same_large_parameters,
    sums_of_large,
)
from trtconv.export.module.noise.fresh_process import FreshProcess
from trtconv.export.module.noise.repeatable import (
    require_repeatable,
    require_same_again,
    state,
)
from trtconv.export.module.outputs import require_names, require_same_outputs
from trtconv.export.module.runner import ModuleRunner, set_eval
from trtconv.export.module.sample_function import inputs_maker
from trtconv.export.module.source import load_module
from trtconv.export.sizes.shape_caches import attributes, find_shape_caches
from trtconv.export.sizes.undefined_sizes import explain_error
from trtconv.proof.points import sample_points
from trtconv.proof.sampling import Samples, Watch, run_samples
from trtconv.proof.sizes import Budget, traced_sizes

if TYPE_CHECKING:
    from trtconv.export.module.padded_runner import PaddedRunner
    from trtconv.proof.original import MakeInputs


@dataclass(frozen=True)
class ObservedModule:
    """A module in eval mode, how it is run, and its state before the first run, in it and outside."""

    module: Any
    runner: ModuleRunner
    make: MakeInputs
    untouched: UntouchedState
    first: FirstState
    files: FilesUsed
    notes: tuple[str, ...] = ()


def load_observed(request: ExportRequest) -> ObservedModule:
    """Load the module that a request names. Raises as `load_module` does, and for inputs that it does not take."""
    notes = []
    module = load_module(request.source)
    if set_eval(module):
        notes.append("the module was in training mode; it is exported in eval mode")
    require_layers_in_eval(module)
    runner = ModuleRunner(module, request.inputs, request.source.base, output_names=request.output_names)
    if runner.binding.note:
        notes.append(f"inputs by position: {runner.binding.note}")
    make = inputs_maker(request.inputs, request.source.sample, request.source.base)
    untouched = UntouchedState(attributes(module), state(module), sums_of_large(module))
    first = FirstState.of(module, untouched)
    return ObservedModule(module, runner, make, untouched, first, FilesUsed(), tuple(notes))


def require_layers_in_eval(module: Any) -> None:
    """Raise UnsupportedError for a batch norm in a plain list or dictionary, which `eval` does not reach."""
    from torch.nn.modules.batchnorm import _BatchNorm

    parts = list(module.modules())
    for part in parts:
        for name, value in vars(part).items():
            entries = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            if name.startswith("_") or not any(isinstance(v, _BatchNorm) and v.training for v in entries):
                continue
            if not all(any(v is p for p in parts) for v in entries if isinstance(v, _BatchNorm)):
                raise UnsupportedError(
                    f"the batch norms in `{name}` of {type(part).__name__} stay in training mode: eval() reaches no "
                    f"layers in a plain {type(value).__name__}",
                    hint=f"hold them in nn.ModuleList or nn.ModuleDict: self.{name} = nn.ModuleList([...])",
                )


def run_at_points(
    runner: ModuleRunner | PaddedRunner, request: ExportRequest, make: MakeInputs, progress: Progress
) -> Samples:
    """What the module computes at the sample points of a request."""
    specs, source = request.inputs, request.source
    traced = traced_sizes(request.space, specs)
    points = sample_points(request.space, specs, traced=traced, seed=source.seed)
    watch = Watch(
        point=lambda count, total: progress.phase("running the module at the sample points", count, total),
        # A module that differs from itself is refused before it is run everywhere.
        first=lambda sample: require_same_again(runner, sample),
    )
    return run_samples(runner, specs, points, make, source.sample is not None, Budget(), watch=watch)


def observe(observed: ObservedModule, request: ExportRequest, progress: Progress) -> Samples:
    """The samples of a module that gives the same again, whatever was run before; its caches by shape are known then.

    Raises AccuracyError for a module that does not, TrtconvError with the user's line where it cannot be run.
    """
    runner = observed.runner
    progress.phase("running the module at the sample points")
    with FreshProcess(runner) as fresh, observed.files:
        try:
            samples = run_at_points(runner, request, observed.make, progress)
        except AccuracyError:
            require_nothing_kept_in_files(observed.files, (), request.source.base)
            raise
        except TrtconvError as error:
            raise explain_error(error, runner, request, observed.make) from error
        shapes = [tuple(v.shape for v in s.inputs.values()) for s in samples.items]
        require_nothing_kept_in_files(observed.files, shapes, request.source.base)
        require_same_outputs(samples.items)
        require_names(samples.items[0].outputs)
        runner.caches = find_shape_caches(runner, observed.untouched.attributes, samples.items)
        require_repeatable(runner, samples.cheapest)
        require_no_use_of_callers(runner, samples.cheapest.inputs)
        require_nothing_beneath(runner, samples.cheapest.inputs, request.source.base)
        require_same_large_parameters(runner.module, observed.untouched)
        require_independent_of_first_call(runner, observed.untouched, samples.items)
        samples = require_nothing_left_outside(runner, observed.first, observed.untouched, samples, fresh)
    require_no_values_of_first_call(runner, observed.untouched, samples, observed.make)
    return samples
