"""The mode under which a module is traced: it hands functions with symbolic sizes to their handlers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from unittest import mock

from trtconv.core.errors import TrtconvError
from trtconv.export.recurrent import packed
from trtconv.export.recurrent.operators import KINDS, as_one_operator
from trtconv.export.sizes.comparisons import arithmetic_of_python, values_in_text
from trtconv.export.sizes.exact.floats import with_exact_floats
from trtconv.export.symbolic import (
    attention,
    convolution,
    experts,
    fourier,
    grids,
    linear_algebra,
    order,
    recurrent,
    short_time,
    sizes,
)
from trtconv.export.symbolic.arithmetic import (
    activations,
    deviations,
    division,
    error_functions,
    exponents,
    losses,
    numerics,
    running_sums,
    shifts,
    size_steps,
    small_integers,
)
from trtconv.export.symbolic.arithmetic.half_precision import computed_in_float32, with_numbers_of_torch
from trtconv.export.symbolic.arithmetic.result_types import converted_first
from trtconv.export.symbolic.complex_numbers import parts as complex_parts
from trtconv.export.symbolic.complex_numbers.functions import complex_call
from trtconv.export.symbolic.encoders import padded_encoders
from trtconv.export.symbolic.indexing import embeddings, joins, masked_writes, memory, sums, writes
from trtconv.export.symbolic.indexing.in_place import in_place_handlers, written
from trtconv.export.symbolic.indexing.repeats import repeat_interleave
from trtconv.export.symbolic.recording import value_checks, written_out
from trtconv.export.symbolic.recording.aliases import RecordedAliases
from trtconv.export.symbolic.recording.conversions import settled_conversions
from trtconv.export.symbolic.recording.definitions import lacks_form, recorded_steps
from trtconv.export.symbolic.recording.errors import RecordedErrors
from trtconv.export.symbolic.recording.keywords import with_names_of_torch, with_plain_flags
from trtconv.export.symbolic.recording.negative_zeros import with_negative_zeros
from trtconv.export.symbolic.recording.seeded import SeededDraws
from trtconv.export.symbolic.recording.vmapped import vmap_by_sizes
from trtconv.export.symbolic.resampling import resize
from trtconv.export.symbolic.resampling.adaptive import adaptive_pool
from trtconv.export.symbolic.resampling.pooling import average_pool, embedding_bag, max_pool
from trtconv.export.threads import in_threads

Handler = Callable[..., Any]
# Operations in the formula of one size. Beyond, torch.export takes seconds for each further operator to compare such
# sizes, and minutes for a network: windows are padded at every stage of a Swin, each by the remainder of the last.
DEEPEST_SIZE = 256


@cache
def handlers() -> Mapping[str, Handler]:
    """The handlers by the name of the function in torch or torch.nn.functional; the same ones in every call.

    A handler gets the function and its arguments; NotImplemented means that the function is traced as it is.
    """
    table: dict[str, Handler] = {
        "interpolate": resize.interpolate, "affine_grid": grids.affine_grid, "grid_sample": grids.grid_sample,
        "repeat_interleave": repeat_interleave,
        "conv1d": convolution.convolution(1), "conv2d": convolution.convolution(2),
        **creation_handlers(), **activations.HANDLERS,
        "median": order.median, "kthvalue": order.kthvalue, "cumprod": order.cumprod, "cummax": order.cummax,
        "cummin": order.cummin, "logcumsumexp": order.logcumsumexp, "searchsorted": order.searchsorted,
        "bucketize": order.bucketize, "isin": order.isin, "take_along_dim": order.take_along_dim,
        "roll": complex_parts.along(order.roll), "einsum": complex_parts.einsum(writes.einsum),
        **dict.fromkeys(("conj", "conj_physical"), complex_parts.conjugate), "Tensor.data": writes.detached,
        "Tensor.data=": writes.assigned_data, "cpu": writes.on_cpu, "__deepcopy__": writes.deep_copy,
        **dict.fromkeys(("real", "Tensor.real"), complex_parts.real), "dropout": writes.dropout,
        "unsafe_chunk": writes.unsafe_parts("chunk"), "unsafe_split": writes.unsafe_parts("split"),
        "unsafe_split_with_sizes": writes.unsafe_parts("split"),
        **{f"{name}_copy": writes.copied(name) for name in writes.VIEWS},
        "tril_indices": grids.triangle(lower=True), "triu_indices": grids.triangle(lower=False),
        "Tensor.unfold": order.tensor_unfold, "log_sigmoid": numerics.logsigmoid,
        "__setitem__": complex_parts.set_item(written_out.set_item(writes.set_item)),
        "__getitem__": packed.get_item(complex_parts.get_item(written_out.get_item)),
        **packed.handlers(),
        "diff": written_out.diff, **dict.fromkeys(("movedim", "moveaxis"), written_out.movedim),
        "layer_norm": written_out.layer_norm, "group_norm": written_out.group_norm, "rms_norm": written_out.rms_norm,
        "nansum": written_out.nansum, "nanmean": written_out.nanmean, "bilinear": written_out.bilinear,
        "slice_scatter": written_out.slice_scatter, "dist": written_out.dist, "addmv": written_out.addmv,
        "addbmm": written_out.addbmm, "diag_embed": written_out.diag_embed,
        "diag": written_out.diag, "trace": written_out.trace,
        **dict.fromkeys(complex_parts.FIRST, complex_parts.along()), "narrow": complex_parts.along(writes.narrow),
        "cat": complex_parts.concatenate,
        "zeros": complex_parts.filled(0.0), "ones": complex_parts.filled(1.0), "zeros_like": complex_parts.zeros_like,
        "diagonal": complex_parts.diagonal(order.diagonal), "remainder": division.remainder,
        "__mod__": division.remainder,
        **dict.fromkeys(("__rshift__", "bitwise_right_shift"), shifts.shift_right),
        **dict.fromkeys(("__lshift__", "bitwise_left_shift"), shifts.shift_left),
        **dict.fromkeys(("__irshift__", "bitwise_right_shift_"), written("__rshift__", shifts.shift_right)),
        **dict.fromkeys(("__ilshift__", "bitwise_left_shift_"), written("__lshift__", shifts.shift_left)),
        **dict.fromkeys(("trunc", "fix"), division.truncated),
        **dict.fromkeys(("floor", "ceil"), division.whole_itself),
        "log1p": numerics.log1p, "expm1": numerics.expm1, "special_log1p": numerics.log1p,
        "special_expm1": numerics.expm1, "special_xlog1py": numerics.xlog1py, "floor_divide": division.floor_divide,
        "__floordiv__": division.floor_divide, "__rfloordiv__": division.reversed_floor_divide,
        **dict.fromkeys(("div", "divide", "true_divide"), complex_parts.divide(division.divide)),
        **dict.fromkeys(("__rdiv__", "__rtruediv__"), complex_parts.divide_reversed),
        **dict.fromkeys(("abs", "absolute"), complex_parts.magnitude), "reciprocal": complex_parts.reciprocal,
        "div_": division.divide_in_place,
        "__ifloordiv__": division.floor_divide_in_place, "floor_divide_": division.floor_divide_in_place,
        "linalg_inv": linear_algebra.inverse, "inverse": linear_algebra.inverse,
        "linalg_det": linear_algebra.determinant, "det": linear_algebra.determinant,
        "linalg_solve": linear_algebra.solve, "cholesky_solve": linear_algebra.cholesky_solve,
        **dict.fromkeys(("linalg_multi_dot", "multi_dot", "chain_matmul"), linear_algebra.chained_product),
        **dict.fromkeys(("max", "min"), order.ranked_booleans), "topk": order.topk,
        "matrix_power": linear_algebra.matrix_power, "linalg_matrix_power": linear_algebra.matrix_power,
        "linalg_cholesky": linear_algebra.cholesky, "cholesky": linear_algebra.cholesky,
        "__bool__": value_checks.truth, "_assert": value_checks.asserted, "_is_all_true": value_checks.all_true,
        "eye": grids.eye, "trapezoid": grids.trapezoid, "trapz": grids.trapezoid, "arange": grids.arange_of_mixed,
        "cumulative_trapezoid": grids.cumulative_trapezoid, "kron": linear_algebra.kronecker,
        "block_diag": linear_algebra.block_diagonal, "gradient": grids.gradient, "nanmedian": order.nanmedian,
        "quantile": written_out.quantile, "unbind": written_out.unbind,
        "nanquantile": order.nanquantile,
        "erfinv": error_functions.erfinv, "special_erfinv": error_functions.erfinv, "erfc": error_functions.erfc,
        "special_erfc": error_functions.erfc, "special_erfcx": error_functions.erfcx,
        "special_log_ndtr": error_functions.log_ndtr,
        "pow": exponents.power, "__pow__": exponents.power, "square": exponents.square,
        "frexp": exponents.frexp, "ldexp": exponents.ldexp, "log2": exponents.log2, "logsumexp": exponents.logsumexp,
        "log10": exponents.log10,
        "fft_fft": fourier.full(-1.0), "fft_ifft": fourier.full(1.0), "fft_fft2": fourier.full2(-1.0),
        "fft_ifft2": fourier.full2(1.0), "fft_rfft": fourier.rfft, "fft_rfft2": fourier.rfft2,
        "fft_irfft": fourier.irfft, "fft_irfft2": fourier.irfft2,
        "fft_fftn": fourier.over_axes(fourier.full2(-1.0)), "fft_ifftn": fourier.over_axes(fourier.full2(1.0)),
        "fft_rfftn": fourier.over_axes(fourier.rfft2), "fft_irfftn": fourier.over_axes(fourier.irfft2),
        "fft_fftshift": fourier.shift(False), "fft_ifftshift": fourier.shift(True),
        "logaddexp": numerics.logaddexp, "cov": linear_algebra.covariance, "corrcoef": linear_algebra.correlation,
        "logaddexp2": numerics.logaddexp2, "fmax": numerics.fmax, "fmin": numerics.fmin, "signbit": numerics.signbit,
        "sign": numerics.sign, "sgn": complex_parts.direction(numerics.sign),
        **dict.fromkeys(("eq", "__eq__"), complex_parts.equal(False)),
        **dict.fromkeys(("ne", "__ne__", "not_equal"), complex_parts.equal(True)),
        "copysign": numerics.copysign, "lerp": numerics.lerp, "rrelu": numerics.rrelu,
        "index_reduce": writes.index_reduce, "fill_diagonal_": writes.fill_diagonal,
        "put": sums.put, "index_add": sums.index_add, "as_strided": memory.as_strided, "stride": memory.stride,
        "diagonal_scatter": writes.diagonal_scatter,
        "index_put": sums.index_put, "bincount": sums.bincount,
        "mode": order.mode, **dict.fromkeys(("any", "all"), small_integers.any_or_all),
        **dict.fromkeys(("matmul", "__matmul__", "bmm", "mm", "mv", "dot"), small_integers.product),
        **dict.fromkeys(("tril", "triu"), small_integers.triangle), "masked_scatter": masked_writes.masked_scatter,
        "cumsum": running_sums.cumsum,
        "pad": complex_parts.pad(sizes.pad), "mean": complex_parts.by_parts(deviations.mean),
        "var": deviations.deviation(root=False), "std": deviations.deviation(root=True),
        "var_mean": deviations.deviation(root=False, with_mean=True),
        "std_mean": deviations.deviation(root=True, with_mean=True),
        "sort": order.sort, "scatter_reduce": writes.scatter_reduce, "tensor_split": order.tensor_split,
        "chunk": order.chunk, "cdist": numerics.cdist,
        "pairwise_distance": numerics.pairwise_distance, "heaviside": numerics.heaviside,
        "instance_norm": numerics.instance_norm, "clamp": numerics.clamp,
        "atan2": numerics.atan2, "arctan2": numerics.atan2, "angle": numerics.angle,
        "add": numerics.add, "__add__": numerics.add, "__radd__": numerics.add,
        "mul": numerics.multiply, "__mul__": numerics.multiply, "__rmul__": numerics.multiply,
        "exp": numerics.exponential, "where": numerics.where,
        **dict.fromkeys(("hstack", "vstack", "dstack", "column_stack", "row_stack", "stack"), joins.join),
        "argsort": order.argsort, "fake_quantize_per_tensor_affine": numerics.fake_quantize,
        "fake_quantize_per_channel_affine": numerics.fake_quantize_by_channel,
        "cross_entropy": losses.cross_entropy, "nll_loss": losses.nll_loss, "soft_margin_loss": losses.soft_margin_loss,
        "binary_cross_entropy_with_logits": losses.binary_cross_entropy_with_logits,
        "embedding_bag": embedding_bag, "embedding": embeddings.embedding,
        "scaled_dot_product_attention": attention.scaled_dot_product_attention,
        "hypot": numerics.hypot, "channel_shuffle": convolution.channel_shuffle,
        "neg": numerics.negate, "negative": numerics.negate, "__neg__": numerics.negate,
        "grouped_mm": experts.grouped_product, "_grouped_mm": experts.grouped_product,
        # The operator that transformers puts in its place where torch has it for other types only.
        "grouped_mm_fallback": experts.grouped_product, "histc": experts.histogram,
        "stft": short_time.stft, "istft": short_time.istft,
        "amax": numerics.extreme_of_all, "amin": numerics.extreme_of_all,
        "full": sizes.full, "squeeze": sizes.squeeze, "tensor": sizes.tensor_of, "as_tensor": sizes.tensor_of,
        "new_tensor": sizes.new_tensor,
        **dict.fromkeys(KINDS, as_one_operator), "lstm": recurrent.lstm,
    }  # fmt: skip
    for rank in (1, 2, 3):
        table[f"conv_transpose{rank}d"] = convolution.conv_transpose(rank)
        table[f"avg_pool{rank}d"] = average_pool(rank)
        table[f"max_pool{rank}d"] = max_pool(rank)
        table[f"adaptive_avg_pool{rank}d"] = adaptive_pool(rank, "average")
        table[f"adaptive_max_pool{rank}d"] = adaptive_pool(rank, "max")
        table[f"adaptive_max_pool{rank}d_with_indices"] = adaptive_pool(rank, "max", indices=True)
    return table | in_place_handlers(table)


@cache
def creation_handlers() -> Mapping[str, Handler]:
    """Those of functions that make a tensor of sizes alone, which torch computes anew for each number."""
    return {
        "unravel_index": grids.unravel_index, "linspace": grids.linspace,
        "fft_rfftfreq": grids.rfftfreq, "fft_fftfreq": grids.fftfreq,
        "hann_window": short_time.cosine_window(0.5, 0.5), "hamming_window": short_time.cosine_window(0.54, 0.46),
        "blackman_window": short_time.cosine_window(0.42, 0.5, 0.08), "bartlett_window": short_time.bartlett_window(),
    }  # fmt: skip


def handled(table: Mapping[str, Handler], name: str, func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What the handler of that name gives for a call, or NotImplemented for one that stays as it is.

    That is a call without a handler, and one with a keyword that the handler does not know (`out`, another spelling).
    """
    handler = table.get(name)
    if handler is None:
        return NotImplemented
    try:
        _signature(handler).bind(None, *args, **named)
    except TypeError:
        return NotImplemented
    return handler(func, *args, **named)


@cache
def _signature(handler: Handler) -> inspect.Signature:
    return inspect.signature(handler)


@dataclass
class SizeBound:
    """Refuses tensors whose symbolic sizes are formulas of more than `DEEPEST_SIZE` operations; looks once at each."""

    _seen: set[Any] = field(default_factory=set)

    def check(self, tensor: Any) -> None:
        """Raise TrtconvError for such a tensor; sizes that are numbers cost nothing."""
        import torch

        for size in tensor.shape:
            if not isinstance(size, torch.SymInt):
                continue
            formula = size.node.expr
            if formula in self._seen:
                continue
            self._seen.add(formula)
            operations = int(formula.count_ops())
            if operations > DEEPEST_SIZE:
                raise TrtconvError(
                    f"a size is computed from others in {operations} operations, more than the {DEEPEST_SIZE} that "
                    "torch.export can follow in a sensible time",
                    hint="give ranges with --dynamic that are multiples of what the network pads its sizes to",
                )


@contextmanager
def symbolic_functions() -> Iterator[RecordedAliases]:
    """Trace with the handlers for the time of the block; gives what is known of tensors that share memory."""
    import torch
    from torch.overrides import TorchFunctionMode

    table, bound, errors, aliases = handlers(), SizeBound(), RecordedErrors(), RecordedAliases()
    draws = SeededDraws()
    # Another function has the first one's name, and all attributes have the second one's.
    renamed: dict[Any, str] = {torch.Tensor.unfold: "Tensor.unfold", torch.Tensor.data.__get__: "Tensor.data"}
    renamed |= {torch.Tensor.data.__set__: "Tensor.data=", torch.Tensor.real.__get__: "Tensor.real"}

    class SymbolicFunctions(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = with_plain_flags(with_names_of_torch(func, kwargs or {}))
            name = renamed.get(func, getattr(func, "__name__", ""))
            out = named.get("out")
            condition = size_steps.compared(name, args)
            if condition is not NotImplemented:
                return condition
            with errors.noted():
                if isinstance(out, torch.Tensor) and torch.jit.is_tracing():
                    # The tracer has the result, and not that it is written there.
                    result = self.__torch_function__(func, types, args, {k: v for k, v in named.items() if k != "out"})
                    if isinstance(result, torch.Tensor) and [*map(int, result.shape)] == [*map(int, out.shape)]:
                        return self.__torch_function__(torch.Tensor.copy_, types, (out, result))
                args, named = with_exact_floats(name, args, named)
                call = partial(self.call, func, name, args, named)
                again = partial(self.again, func, name)
                return size_steps.carry(name, args, named, aliases.follow(again, name, args, named, call))

        def again(self, func: Any, name: str, *args: Any, **named: Any) -> Any:
            """The same call of other tensors."""
            return self.call(func, name, args, named)

        def call(self, func: Any, name: str, args: Any, named: Mapping[str, Any]) -> Any:
            result = converted_first(name, args, named, self.cast, lambda a, n: self.call(func, name, a, n))
            if result is not NotImplemented:
                return result
            result = with_negative_zeros(name, args, named, lambda a, n: self.call(func, name, a, n))
            if result is not NotImplemented:
                return result
            result = draws.constant(func, name, args, named)
            if result is not NotImplemented:
                return result
            result = computed_in_float32(name, args, named, lambda a, n: self.call(func, name, a, n))
            if result is not NotImplemented:
                return result
            result = with_numbers_of_torch(name, args, named, lambda n, a, k: self.named(func, name, n, a, k))
            if result is not NotImplemented:
                return result
            result = complex_call(func, name, args, named, self.call)
            if result is NotImplemented:
                result = handled(table, name, func, args, named)
            if result is not NotImplemented:
                aliases.note_copies(name, args, result, lambda x: handled(table, name, func, (x, *args[1:]), named))
                return result
            result = recorded_steps(self, func, name, args, named) if lacks_form(name) else func(*args, **named)
            if isinstance(result, torch.Tensor):
                bound.check(result)
            return result

        def cast(self, tensor: Any, dtype: Any) -> Any:
            return self.call(torch.Tensor.to, "to", (tensor, dtype), {})

        def named(self, func: Any, name: str, other: str, args: Any, named: Mapping[str, Any]) -> Any:
            """The function, or the one of another name in its place."""
            return self.call(func if other == name else getattr(torch, other), other, args, named)

    with (
        convolution.unchecked_output_size(),
        arithmetic_of_python(),
        values_in_text(),
        padded_encoders(),
        settled_conversions(),
        attention.flexible_attention_by_steps(),
        attention.causal_by_size(),
        packed.sequences_counted(),
        vmap_by_sizes(),
        draws.noted(),
        # What `copy.copy` gives shares its memory.
        mock.patch.object(torch.Tensor, "__copy__", lambda tensor: tensor.view_as(tensor), create=True),
        in_threads(errors.in_thread),
        SymbolicFunctions(),
    ):
        yield aliases
    errors.require_none()
