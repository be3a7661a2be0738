"""The judge: torch and ONNX Runtime at the judge's own points, with nothing of trtconv's comparison."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.adversary.attack import Array, Feed
from trtconv.backends.onnxruntime.byte_products import multiplies_bytes, with_unsigned_weights
from trtconv.backends.onnxruntime.half_emulation import emulate_halves
from trtconv.core.model.bodies import walk_nodes
from trtconv.export.module.noise.ranked import stable_sorts

# An element is wrong when it is off by more than this share of itself, and by far more than the module's own rounding.
SHARE, OF_LARGEST, ROUNDINGS = 1e-4, 1e-6, 30


def flatten(value: Any) -> Iterator[Any]:
    """The tensors of what a module returned, in order."""
    import torch

    if isinstance(value, (torch.Tensor, int, float, bool)):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from flatten(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from flatten(getattr(value, field.name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from flatten(item)


def _wide_casts() -> Any:
    """A mode in which a cast to a narrower floating type is one to FP64."""
    import torch
    from torch.overrides import TorchFunctionMode

    narrow = (torch.float16, torch.bfloat16, torch.float32)

    class WideCasts(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(function, "__name__", "") in ("half", "float", "bfloat16"):
                return args[0].double()
            wide = [torch.float64 if isinstance(a, torch.dtype) and a in narrow else a for a in args]
            more = {
                n: torch.float64 if isinstance(a, torch.dtype) and a in narrow else a for n, a in (kwargs or {}).items()
            }
            return function(*wide, **more)

    return WideCasts()


class Eager:
    """The module in FP32 and in FP64; one instance for all points, so that its state goes on from call to call."""

    def __init__(self, module: Any) -> None:
        # An adapter merges again at each call of eval().
        self._module = module.eval() if any(m.training for m in module.modules()) else module
        self.ran = 0
        try:
            self._exact = copy.deepcopy(self._module).double()
        except Exception:  # whatever a module raises when it is copied
            self._exact = None

    def __call__(self, feed: Feed) -> tuple[list[Array], list[Array]]:
        """The outputs, and those of FP64 (the same where it cannot be had)."""
        plain = self._run(self._module, feed, False)
        self.ran += 1
        try:
            exact = self._run(self._exact, feed, True) if self._exact is not None else plain
        except Exception:  # a module that casts: its casts keep FP64
            try:
                with _wide_casts():
                    exact = self._run(self._exact, feed, True)
            except Exception:  # nor so: then FP32 alone is there to judge by, as it is for a module without FP64
                exact = plain
        fits = len(exact) == len(plain) and all(a.shape == b.shape for a, b in zip(plain, exact, strict=True))
        return plain, exact if fits else plain

    def _run(self, module: Any, feed: Feed, wide: bool) -> list[Array]:
        import torch

        tensors = {n: torch.from_numpy(np.array(v)) for n, v in feed.items()}
        if wide:
            tensors = {n: t.double() if t.is_floating_point() else t for n, t in tensors.items()}
        # torch leaves open which of equal elements comes first; ONNX does not.
        with torch.no_grad(), stable_sorts():
            try:
                outputs = module(**tensors)
            except (TypeError, IndexError, KeyError):  # other names of parameters, or a hook takes them by position
                outputs = module(*tensors.values())
        return [np.asarray(o.detach().cpu() if hasattr(o, "detach") else o) for o in flatten(outputs)]


class File:
    """The ONNX file in ONNX Runtime, without its optimisations: what the graph says."""

    def __init__(self, path: Path | bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self._source = path if isinstance(path, bytes) else str(path)
        source = self._source
        graph = onnx.load(source) if isinstance(source, str) else onnx.load_model_from_string(source)
        attributes = (a for n in walk_nodes(graph.graph.node) for a in n.attribute)
        if any(a.name == "to" and a.i == onnx.TensorProto.BFLOAT16 for a in attributes):
            # ONNX Runtime has no kernels for it.
            graph = emulate_halves(graph)
            source = graph.SerializeToString()
        if multiplies_bytes(graph.SerializeToString()):
            # Its products of uint8 and int8 saturate in 16 bits on processors without VNNI.
            source = with_unsigned_weights(graph).SerializeToString()
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self._inputs = [i.name for i in self._session.get_inputs()]

    def __call__(self, feed: Feed) -> list[Array]:
        return list(self._session.run(None, {n: feed[n] for n in self._inputs if n in feed}))

    def as_defined(self, feed: Feed) -> list[Array]:
        """By ONNX's own evaluator: ONNX Runtime leaves out roundings to half and has logistics good to 1e-8 only."""
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(self._source)
        return list(evaluator.run(None, {n: feed[n] for n in self._inputs if n in feed}))


def difference(expected: Array, exact: Array, actual: Array) -> str:
    """What is wrong with an output, in a few words; empty when it is equal."""
    if expected.shape != actual.shape:
        return f"shape {actual.shape} for {expected.shape}"
    if expected.dtype.kind in "iubf" and expected.dtype != actual.dtype:
        return f"{actual.dtype} for {expected.dtype}"
    if not expected.size:
        return ""
    a, b, c = (
        np.atleast_1d(v).astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (expected, actual, exact)
    )
    with np.errstate(all="ignore"):
        error, own = np.abs(a - b), np.abs(a - c)
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        own[a == c] = 0.0
        own = np.where(np.isnan(own), np.inf, own)
        finite = np.where(np.isfinite(a), np.abs(a), 0.0)
        allowed = np.zeros_like(error)
        if expected.dtype.kind in "fc":
            usual = np.quantile(np.where(np.isfinite(own), own, 0.0), 0.9)
            largest = finite.max(where=finite < 1e30, initial=0.0)
            allowed = SHARE * finite + OF_LARGEST * largest + 10 * usual + 1e-37
        allowed = np.where(own > 0, np.maximum(allowed, ROUNDINGS * own), allowed)
        bad = ~(error <= allowed)
    if not bad.any():
        return ""
    where = int(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), 0.0)))
    return f"{bad.mean():.0%} of elements, {np.ravel(actual)[where]!r} for {np.ravel(expected)[where]!r}"


def compare(eager: Eager, file: File, feed: Feed) -> str:
    """What is wrong at a point; empty when all outputs are equal or the module itself raises there."""
    try:
        expected, exact = eager(feed)
    except Exception:  # the module is undefined there
        return ""
    again, _ = eager(feed)
    if any(difference(a, a, b) for a, b in zip(expected, again, strict=True)):
        return "the module differs from itself"
    try:
        actual = file(feed)
    except Exception as error:  # whatever ONNX Runtime raises
        return f"the file raises: {str(error)[:150]}"
    if len(actual) != len(expected):
        return f"{len(actual)} outputs for {len(expected)}"
    wrong = _first_difference(expected, exact, actual)
    if not wrong:
        return ""
    try:
        defined = file.as_defined(feed)
    except Exception:  # an operator that the evaluator lacks: what ONNX Runtime says stands
        return wrong
    return wrong if _first_difference(expected, exact, defined) else ""


def _first_difference(expected: list[Array], exact: list[Array], actual: list[Array]) -> str:
    differences = [difference(*v) for v in zip(expected, exact, actual, strict=True)]
    return next((f"output {i}: {d}" for i, d in enumerate(differences) if d), "")
