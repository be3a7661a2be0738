"""ONNX Runtime on the CPU: the numerics by which export, rewrites and checks are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.byte_products import multiplies_bytes, with_unsigned_weights
from trtconv.backends.onnxruntime.empty_sequences import empty_sequence, holds_recurrences, with_guarded_recurrences
from trtconv.backends.onnxruntime.half_emulation import casts_to_halves, emulate_halves
from trtconv.backends.onnxruntime.long_sums import holds_sums, with_exact_sums
from trtconv.backends.onnxruntime.missing_kernel import missing_kernel
from trtconv.backends.onnxruntime.sigmoid_tails import has_sigmoids, with_exact_sigmoids
from trtconv.backends.onnxruntime.whole_division import divides, division_by_zero, with_guarded_divisions
from trtconv.backends.onnxruntime.wide_extremes import has_extremes, with_exact_extremes
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, TrtconvError
from trtconv.core.model.wire import without_weights
from trtconv.core.processors import granted_processors
from trtconv.core.text.error_text import error_text

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# A larger file is not read twice.
MOST_BYTES_READ = 1 << 29
_FAILED = re.compile(
    r"Non-zero status code returned while running (?P<operator>\w+) node\. Name:'(?P<name>[^']*)' Status Message: "
    r"(?:/\S+:\d+ (?P<condition>.*? was false\.))?(?P<rest>.*)"
)
BFLOAT16, BFLOAT16_NUMBER = "tensor(bfloat16)", 16


class OnnxRuntimeRunner:
    """Runs an ONNX file (or serialized model) on the CPU.

    `optimize=False` (the default) runs the graph as it is written: ONNX Runtime's own fusions are not what is
    judged. What its kernels compute less exactly than it is defined runs in another form, which makes a graph with
    many sigmoids three times as large; `exact=False` is for two graphs of which both run by the same kernels. `rounded`
    rounds every value that a cast has made FP16, as torch does; ONNX Runtime rounds where it likes. `weights` are
    OrtValues of external FP32 weights by name, which are then read nowhere else. Inputs and outputs are NumPy arrays by
    name. Raises TrtconvError when the file is refused or a run fails.
    """

    def __init__(
        self,
        model: Path | bytes,
        *,
        optimize: bool = False,
        threads: int = 0,
        exact: bool = True,
        rounded: bool = False,
        weights: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import onnxruntime as ort
        except ModuleNotFoundError as error:
            raise MissingDependencyError("ONNX Runtime is not installed", hint="pip install onnxruntime") from error
        except ImportError as error:
            # Ctrl-C while its library is loaded comes as one, with the interrupt behind it.
            if _is_interrupt(error):
                raise KeyboardInterrupt from error
            raise MissingDependencyError(
                f"ONNX Runtime cannot be loaded: {error_text(error)}", hint="pip install --force-reinstall onnxruntime"
            ) from error
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads or granted_processors()
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
        # Two sizes in a row differ in every buffer, so a remembered memory pattern only costs memory.
        options.enable_mem_pattern = False
        # Threads that wait for work burn a core each, beside torch's own and other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # A glance costs a read of the file, which the session reads as well.
        subject = _as_defined(model, exact, rounded, frozenset(weights or ()))
        # The session reads them as long as it lives.
        self._weights = weights
        if weights:
            options.add_external_initializers(list(weights), list(weights.values()))
        try:
            self._session = ort.InferenceSession(subject, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises many unrelated classes
            if missing := missing_kernel(str(error), model):
                raise TrtconvError(str(missing), hint=missing.hint) from error
            raise TrtconvError(f"ONNX Runtime refuses the model: {first_line(error)}") from error
        self.input_names: tuple[str, ...] = tuple(i.name for i in self._session.get_inputs())
        self.output_names: tuple[str, ...] = tuple(o.name for o in self._session.get_outputs())
        self.version: str = ort.__version__
        # ONNX Runtime writes its warnings to stderr and has no call that gives them.
        self.warnings: tuple[str, ...] = ()
        ends = (*self._session.get_inputs(), *self._session.get_outputs())
        self._bfloat16: frozenset[str] = frozenset(e.name for e in ends if e.type == BFLOAT16)

    def __call__(self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None) -> dict[str, Array]:
        """Run once; inputs that the graph does not have are left out. Raises InvalidRequestError when it is closed."""
        if self._session is None:
            raise InvalidRequestError("the model is closed", hint="open it again")
        feed = {n: inputs[n] for n in self.input_names if n in inputs}
        names = list(outputs or self.output_names)
        try:
            values = self._run_values(names, feed) if self._bfloat16 else self._session.run(names, feed)
        except Exception as error:
            if node := division_by_zero(str(error)):
                raise TrtconvError(f"'{node}' divides whole numbers by zero") from error
            if node := empty_sequence(str(error)):
                raise TrtconvError(f"'{node}' runs over an empty sequence") from error
            raise TrtconvError(f"ONNX Runtime fails at run time{failed_node(first_line(error))}") from error
        return dict(zip(names, values, strict=True))

    def close(self) -> None:
        """Free the graph and its weights."""
        self._session = None

    def _run_values(self, names: list[str], feed: Mapping[str, Array]) -> list[Array]:
        """The same with bfloat16 among inputs or outputs, which the binding does not hand over as NumPy arrays."""
        import onnxruntime as ort

        ort_values = {}
        for name, array in feed.items():
            if name in self._bfloat16:
                value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bfloat16_bits(array), BFLOAT16_NUMBER)
            else:
                value = ort.OrtValue.ortvalue_from_numpy(array)
            ort_values[name] = value
        return [_array_of(value) for value in self._session.run_with_ort_values(names, ort_values)]


def _as_defined(
    model: Path | bytes, exact: bool, rounded: bool, at_hand: frozenset[str] = frozenset()
) -> str | bytes:
    """What a session is made of: the file or bytes, with what ONNX Runtime computes less exactly than it is defined
    in another form: products of bytes that would saturate, divisions and recurrences over nothing that would end the
    process, BF16, which it has no kernels for, the larger of two int64, and, if `exact`, sigmoids far below zero and
    long sums, and, if `rounded`, FP16. Of a model with external weights other than those `at_hand` nothing is changed.
    """
    try:
        small = isinstance(model, bytes) or model.stat().st_size <= MOST_BYTES_READ
        data = model if isinstance(model, bytes) else model.read_bytes() if small else b""
    except OSError:
        data = b""  # what is wrong with the file is told by the session
    as_it_is = str(model) if isinstance(model, Path) else model
    # Each of these looks for names of operators.
    words = without_weights(data)
    bytewise, divisions, sigmoids = multiplies_bytes(words), divides(words), exact and has_sigmoids(words)
    halves, extremes = casts_to_halves(words, rounded), has_extremes(words)
    recurrences, sums = holds_recurrences(words), exact and holds_sums(words)
    if not (bytewise or divisions or sigmoids or halves or extremes or recurrences or sums):
        return as_it_is
    import onnx
    from google.protobuf.message import DecodeError

    try:
        changed = onnx.load_model_from_string(data)
    except DecodeError:
        return as_it_is  # as above
    external = {t.name for t in changed.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}
    if not external <= at_hand:
        return as_it_is
    if halves:
        changed = emulate_halves(changed)
    if bytewise:
        with_unsigned_weights(changed)
    guarded = divisions and with_guarded_divisions(changed)
    followed = recurrences and with_guarded_recurrences(changed)
    composed = sigmoids and with_exact_sigmoids(changed)
    chosen = extremes and with_exact_extremes(changed)
    summed = sums and with_exact_sums(changed)
    if not (halves or bytewise or guarded or followed or composed or chosen or summed):
        return as_it_is
    return bytes(changed.SerializeToString())


def bfloat16_bits(array: Array) -> Array:
    """The bits of bfloat16 values as uint16; FP32 is rounded to nearest even (onnx before 1.19 has no bfloat16)."""
    import numpy as np

    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array).view(np.uint16)
    wide = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def _array_of(value: Any) -> Array:
    """An output as an array: bfloat16 in ml_dtypes' type, in FP32 where that is not installed."""
    import ctypes

    import numpy as np

    if value.data_type() != BFLOAT16:
        array: Array = value.numpy()
        return array
    shape = tuple(value.shape())
    count = int(np.prod(shape))
    data = ctypes.string_at(value.data_ptr(), 2 * count) if count else b""
    bits = np.frombuffer(data, np.uint16).reshape(shape)
    try:
        import ml_dtypes
    except ImportError:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(ml_dtypes.bfloat16)


def failed_node(text: str) -> str:
    """What ONNX Runtime says of the node at which a run failed, without the place and condition in its own code."""
    match = _FAILED.match(text)
    if match is None:
        return f": {text}"
    # That of an If or a Loop ends in what its body says.
    inner = match["rest"].strip() or match["condition"] or ""
    return f" in {match['operator']} '{match['name']}'{failed_node(inner)}"


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something, without ONNX Runtime's file and line prefix."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text.split(" : ", 3)[-1] if text.startswith("[ONNXRuntimeError]") else text


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error of an import, or in the words of the library that met it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or "KeyboardInterrupt" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
