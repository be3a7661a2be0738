"""Running the original module on NumPy arrays by name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stdout
from functools import cache
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.tensors import TensorSpec
from trtconv.export.lasting.process_settings import settings_of_user
from trtconv.export.module.binding import Binding, bind_inputs
from trtconv.export.module.noise.endless_runs import RunLimit
from trtconv.export.module.noise.other_paths import takes_another_path
from trtconv.export.module.noise.ranked import RANKING, Reranked, stable_sorts, torch_ranks
from trtconv.export.module.noise.run_errors import errors_of_module
from trtconv.export.module.noise.threads import FasterThreads
from trtconv.export.module.noise.twins import (
    INTERPOLATING,
    STEPPING,
    Resampled,
    Resummed,
    denormals_flushed,
    exact_twin,
    perturbed_twin,
    weight_bytes,
    wide_floats,
)
from trtconv.export.module.outputs import distinct_from_inputs, named_tensors, rename_outputs, under_own_names
from trtconv.export.recurrent.gates import InexactGates, InexactLogistics
from trtconv.export.sizes.shape_caches import ShapeCaches
from trtconv.export.sizes.shared_caches import shared_caches
from trtconv.export.sizes.work import FUSED_ATTENTION, counted_work

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

    from trtconv.export.module.user_code import Frame
    from trtconv.proof.original import Run

    Array = np.ndarray[Any, np.dtype[Any]]


def shapes_of_run() -> tuple[tuple[int, ...], ...] | None:
    """The shapes of the inputs of the run that the caller is called in, by whichever runner; None outside of one."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not ModuleRunner.watched.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(tuple(v.shape) for v in frame.f_locals["inputs"].values()) if frame is not None else None


class ModuleRunner:
    """Runs a module in eval mode: a dict of arrays in, a dict of arrays out, in the order in which it returns them.

    Raises InvalidRequestError when the inputs do not fit forward's parameters, and TrtconvError with the user's line
    when the module raises.

    Without `specs` the inputs are those of the first call, by name. `output_names` are given to the outputs in order;
    unless `renames`, only to those whose own names are not among them, and only where their number fits.
    """

    # Class attributes, as runners of a part have an __init__ of their own.
    # `interpolates` says whether the last run in FP64 (of the twin, whose `twin_of` this is) did; `steps` and
    # `has_gates` likewise.
    # Another size may take another path, so that none of them tells for the next.
    # `wide` runs take float32 for float64. `ranks` is True once a counted run has put elements into an order.
    interpolates = True
    steps = False
    has_gates = True
    ranks = False
    caches = ShapeCaches()
    threads = FasterThreads()
    limit = RunLimit()
    wide = False
    twin_of: ModuleRunner | None = None
    # Whether its FP64 takes another path; not known until its noise is implausible.
    other_path: bool | None = None

    def __init__(
        self,
        module: nn.Module,
        specs: Sequence[TensorSpec] | None = None,
        base: Path = Path(),
        *,
        output_names: Sequence[str] = (),
        renames: bool = True,
    ) -> None:
        set_eval(module)
        self.module = module
        self.base = base
        self.output_names, self.renames = tuple(output_names), renames
        self.written_names: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        self.binding = Binding(())
        self.caches = ShapeCaches(shared=shared_caches(module)) if specs is not None else ShapeCaches()
        self.threads = FasterThreads()
        self.limit = RunLimit()
        if specs is not None:
            self._bind([s.name for s in specs], [s.parameter for s in specs])

    def _bind(self, names: Sequence[str], parameters: Sequence[str] = ()) -> None:
        """`parameters`: those that the user named, in the order of `names`; empty for the others."""
        self.names = tuple(names)
        bound = [p or n for n, p in zip_longest(names, parameters, fillvalue="")]
        hooked = _hooks_take_positions(self.module)
        self.binding = bind_inputs(forward_of(self.module), bound, hooked, claimed=frozenset(parameters))

    def with_module(self, module: nn.Module, wide: bool = False) -> ModuleRunner:
        """Another module run in the same way, or with float64 for float32."""
        other = ModuleRunner(module, None, self.base, output_names=self.output_names, renames=self.renames)
        other.names, other.binding, other.wide, other.ranks = self.names, self.binding, wide, self.ranks
        other.caches, other.threads = ShapeCaches(shared=self.caches.shared), self.threads
        other.limit, other.twin_of = self.limit, self if wide else None
        return other

    @property
    def weight_bytes(self) -> int:
        """The bytes of the module's parameters."""
        return weight_bytes(self.module)

    def exact(self) -> ModuleRunner | None:
        """The module in FP64; None when it is too large to copy, cannot be copied, or is another function there."""
        return None if self.other_path else exact_twin(self)

    def is_another_in_fp64(self, inputs: Mapping[str, Array]) -> bool:
        """Whether FP64 takes another path through the module; what is seen at the first inputs holds for all."""
        if self.other_path is None:
            self.other_path = takes_another_path(self, inputs)
        return self.other_path

    def perturbed(self, seed: int) -> ModuleRunner | None:
        """The module with each weight moved by at most one unit in its last place; None as for `exact`."""
        return perturbed_twin(self, seed)

    def resampled(self, exact: Run | None = None) -> tuple[Resampled, ...]:
        """`exact` with the coordinates of its interpolations moved to all sides; empty where its last run had none."""
        if exact is None or not self.interpolates:
            return ()
        return tuple(Resampled(exact, sides) for sides in ((1, 1), (-1, -1), (1, -1), (-1, 1)))

    def inexact(self, exact: Run) -> tuple[InexactGates, ...]:
        """`exact` with the gates of its recurrent layers off by a rounding; empty where its last run had none."""
        return (InexactGates(exact),) if self.has_gates else ()

    def resummed(self, exact: Run) -> Resummed:
        """`exact` with the means of its normalisations added up in FP32, one term after the other."""
        return Resummed(exact)

    def logistic(self, exact: Run) -> InexactLogistics:
        """`exact` with its sigmoids and tanhs off by a rounding."""
        return InexactLogistics(exact)

    def reranked(self, seed: int, ties: bool) -> Reranked | None:
        """The module with what it ranks nearly equal in another order; None until a counted run has ranked anything."""
        return Reranked(self, seed, ties) if self.ranks else None

    def as_torch_ranks(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], tuple[Frame, ...]]:
        """Run once with torch's own order of equal elements; and the lines at which the first is not the first."""
        ranks, self.ranks = self.ranks, False
        try:
            with torch_ranks() as lines:
                outputs = self(inputs)
            return outputs, tuple(lines)
        finally:
            self.ranks = ranks

    def flushed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once with denormal numbers taken for zero, as GPUs take them."""
        with denormals_flushed():
            return self(inputs)

    def counted(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], float]:
        """Run once: the outputs, and the floating point operations of the run. Raises TrtconvError.

        Of a module that cannot be watched, such as one that lives in another library, the operations are 0.
        """
        try:
            with counted_work() as work:
                outputs = self(inputs)
        except TrtconvError:
            return self(inputs), 0.0
        self.ranks = not RANKING.isdisjoint(work.names)
        # Under a mode that watches, what a fused operator calls inside does not see torch.autocast.
        again = self.ranks or not FUSED_ATTENTION.isdisjoint(work.names)
        return self(inputs) if again else outputs, work.operations

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Outputs keep their dtype; bfloat16 comes as ml_dtypes' bfloat16."""
        return self.watched(inputs, lambda tensors: nullcontext())

    def watched(
        self, inputs: Mapping[str, Array], watching: Callable[[dict[str, torch.Tensor]], AbstractContextManager[Any]]
    ) -> dict[str, Array]:
        """Run once within what `watching` makes of the input tensors."""
        import torch

        if not self.names:
            self._bind(list(inputs))
        tensors = self.tensors(inputs)
        operators: set[str] = set()
        with ExitStack() as stack:
            for context in (torch.no_grad(), redirect_stdout(StringIO()), uncompiled()):
                stack.enter_context(context)
            if self.wide:
                operators = stack.enter_context(wide_floats())
                stack.enter_context(self.caches.shared.emptied())
                stack.enter_context(self.threads.chosen(inputs))
            if self.ranks:
                stack.enter_context(stable_sorts())
            stack.enter_context(watching(tensors))
            outputs = self._run(tensors)
        if self.twin_of is not None:
            self.twin_of.interpolates = not INTERPOLATING.isdisjoint(operators)
            self.twin_of.steps = not STEPPING.isdisjoint(operators)
            self.twin_of.has_gates = not {"lstm", "gru"}.isdisjoint(operators)
            self.twin_of.ranks |= not RANKING.isdisjoint(operators)
        return {name: to_array(value) for name, value in outputs.items()}

    def tensors(self, inputs: Mapping[str, Array]) -> dict[str, torch.Tensor]:
        """What a call is handed: tensors of its own."""
        return {name: to_tensor(inputs[name]) for name in self.names}

    def _run(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        positional, keywords = self.binding.arguments(list(tensors.values()))
        with errors_of_module(tensors, self.base), settings_of_user(), self.limit.watched():
            returned = self.module(*positional, **keywords)
        named = named_tensors(returned)
        self.written_names = tuple(name for name, _ in named)
        outputs = distinct_from_inputs(under_own_names(named), self.names)
        return rename_outputs(outputs, self.output_names, exactly=self.renames)


@cache
def load_dynamo() -> None:
    """Import torch._dynamo and let it change torch as it does once in a process, but for the checks of distributions.

    It switches off the arguments' checks in torch.distributions for good: a module that catches their errors would do
    something else after its conversion than before. The import takes a second or two; torch.export makes it as well.
    """
    from torch._dynamo.eval_frame import TorchPatcher
    from torch.distributions import Distribution

    checked = Distribution._validate_args
    TorchPatcher.patch()
    Distribution.set_default_validate_args(checked)


@contextmanager
def uncompiled() -> Iterator[None]:
    """What the user gave to torch.compile runs as it was written: each size would be compiled anew, for a minute.

    torch.compile loads torch._dynamo; as long as nobody has, nothing is compiled.
    """
    import torch

    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def forward_of(module: nn.Module) -> Callable[..., Any]:
    """The function whose signature has the inputs' names."""
    named = getattr(module, "named_forward", None)
    chosen: Callable[..., Any] = named if callable(named) else module.forward
    return chosen


def take_named_inputs(module: nn.Module, signature: inspect.Signature) -> nn.Module:
    """The module, whose `forward_of` has the names of another function's parameters."""

    def named_forward(*inputs: Any, **named: Any) -> Any:
        return module(*inputs, **named)

    named_forward.__signature__ = signature  # type: ignore[attr-defined]
    module.named_forward = named_forward
    return module


def _hooks_take_positions(module: nn.Module) -> bool:
    """True when a hook is given the positional arguments alone: inputs passed by name would not reach it."""
    hooks = ("_forward_pre_hooks", "_forward_hooks")
    return any(set(getattr(module, h, {})) - set(getattr(module, f"{h}_with_kwargs", {})) for h in hooks)


def set_eval(module: nn.Module) -> bool:
    """Put the module in eval mode; True when it was in training mode. Exported programs have no modes.

    One that is in eval mode already is left alone: adapters add their part to the weights at each call of `eval`.
    """
    if not any(m.training for m in module.modules()):
        return False
    try:
        module.eval()
    except NotImplementedError:
        return False
    return True


def to_tensor(array: Array) -> torch.Tensor:
    """A tensor with the array's values and dtype, in memory of torch's own. No mode sees it made."""
    import numpy as np
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    if not isinstance(array, np.ndarray):
        raise InvalidRequestError(f"an input is of type {type(array).__name__}, not an array")
    bfloat16 = array.dtype.name == "bfloat16"
    values = np.ascontiguousarray(array).reshape(array.shape)
    with _disable_current_modes():
        return torch.tensor(values.view(np.int16)).view(torch.bfloat16) if bfloat16 else torch.tensor(values)


def to_array(tensor: torch.Tensor) -> Array:
    """An array with the tensor's values and dtype."""
    import numpy as np
    import torch
    from torch._subclasses import FakeTensor

    plain = tensor.detach().cpu()
    if plain.is_sparse:
        plain = plain.to_dense()
    plain = plain.resolve_conj().resolve_neg().contiguous()
    if plain.dtype == torch.bfloat16:
        import ml_dtypes

        return np.array(plain.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
    if isinstance(plain, FakeTensor):
        raise UnsupportedError(
            "an output comes from a tensor that another run left in the module: a hook, a closure or a list refers to "
            "the module itself, so that copies of it write there too",
            hint="hand on what a call computes within the call, instead of keeping it on the module",
        )
    try:
        return np.array(plain.numpy())
    except TypeError as error:
        raise UnsupportedError(
            f"an output is of type {str(plain.dtype).removeprefix('torch.')}, which NumPy has no form of",
            hint="return it in another type, as `.float()`",
        ) from error
