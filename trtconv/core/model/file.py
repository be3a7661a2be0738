"""Reading and writing ONNX files: external weights are never read without need, outputs are renamed into place."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import replacing, require_file
from trtconv.core.dtypes import DTYPES, dtype_from_onnx
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.output_paths import ENGINE_SUFFIXES, require_distinct
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.dim_names import axis_name, name_dims
from trtconv.core.model.form import require_form
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.tensors import Dim, TensorSpec, parse_tensor

if TYPE_CHECKING:
    import onnx

EXTERNAL_ABOVE = 1 << 30
SMALL_BYTES = 1 << 10
MOST_STRUCTURES = 4
_WEIGHTS = ("a file of weights", "name the module that they are for: trtconv convert net.py:FACTORY --weights {path}")
# What users name by mistake where a model is asked for, and what they mean.
_OTHER_KINDS = {
    ".py": ("a Python file", "convert a module of it: trtconv convert {path}:FACTORY"),
    ".pt2": ("a program of torch.export", "convert it: trtconv convert {path}"),
    **dict.fromkeys(
        ENGINE_SUFFIXES,
        ("an engine, which is built", "check it with trtconv check {path}, or name the ONNX file that it is of"),
    ),
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin", ".safetensors"), _WEIGHTS),
}
_STRUCTURES: dict[tuple[str, int, int, int, int], onnx.ModelProto] = {}


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model, and the shape space that export recorded in it (empty when none)."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    opset: int


def load_model(path: Path, *, weights: bool = False) -> onnx.ModelProto:
    """Load a model; external weights stay on disk unless `weights`. Raises InvalidRequestError when it is not ONNX.

    What later steps rely on is checked here, once for all of them (`require_form`), and dims of inputs get names that
    can be typed (`name_dims`).
    """
    import onnx.parser
    from google.protobuf import json_format, text_format
    from google.protobuf.message import DecodeError

    require_file(path, "ONNX model")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (
        DecodeError,
        ValueError,
        RecursionError,
        json_format.Error,
        text_format.ParseError,
        onnx.parser.ParseError,
    ) as error:
        raise _no_model(path) from error
    if not model.HasField("graph") or not model.opset_import or not (model.graph.node or model.graph.output):
        raise _no_model(path)
    require_form(model, path)
    name_dims(model)
    if weights:
        load_weights(model, path.parent)
    return model


def load_structure(path: Path) -> onnx.ModelProto:
    """A model as `load_model` gives it, without the content of weights of 1 KiB and more; raises as that does.

    It is read once while the file stays what it is, and shared: whoever wants to change it copies it.
    """
    status = require_file(path, "ONNX model").stat()
    key = (os.path.abspath(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if key not in _STRUCTURES:
        model = load_model(path)
        for tensor in all_tensors(model.graph):
            if len(tensor.raw_data) >= SMALL_BYTES:
                tensor.ClearField("raw_data")
        while len(_STRUCTURES) >= MOST_STRUCTURES:
            # Another thread may have removed it.
            _STRUCTURES.pop(next(iter(_STRUCTURES)), None)
        _STRUCTURES[key] = model
    return _STRUCTURES[key]


def load_weights(model: onnx.ModelProto, folder: Path) -> None:
    """Read the external weights from `folder` into the model. Raises InvalidRequestError if one is cut off."""
    import onnx.external_data_helper

    outside = [t for t in all_tensors(model.graph) if t.data_location == onnx.TensorProto.EXTERNAL]
    if not outside:
        return
    sizes = {d.onnx: d.size for d in DTYPES}
    try:
        onnx.external_data_helper.load_external_data_for_model(model, str(folder))
        for tensor in outside:
            # onnx before 1.18 accepts a truncated file.
            expected_bytes = sizes.get(tensor.data_type, 0) * math.prod(tensor.dims)
            if len(tensor.raw_data) < expected_bytes:
                raise ValueError(f"'{tensor.name}' has {len(tensor.raw_data)} bytes of {expected_bytes}")
            # As in a tensor that was never outside.
            tensor.ClearField("data_location")
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise InvalidRequestError(
            f"the external weights in '{folder}' cannot be read: {error}", hint="copy all of them beside the model"
        ) from error


def _no_model(path: Path) -> InvalidRequestError:
    other = _OTHER_KINDS.get(path.suffix.lower())
    if other is not None:
        kind, hint = other
        return InvalidRequestError(f"'{path}' is {kind}, not an ONNX model", hint=hint.format(path=path))
    return InvalidRequestError(
        f"'{path}' is truncated or not an ONNX model", hint="name an ONNX file, or copy it again"
    )


def external_files(model: onnx.ModelProto) -> tuple[str, ...]:
    """Relative paths of the external data files that the model's tensors name, in order of first use."""
    import onnx

    names: dict[str, None] = {}
    for tensor in all_tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            names.update({e.value: None for e in tensor.external_data if e.key == "location"})
    return tuple(names)


def model_files(path: Path, model: onnx.ModelProto) -> tuple[Path, ...]:
    """The file of a model and its external data files: none of them may be an output of what reads the model."""
    return (path, *(path.parent / name for name in external_files(model)))


def all_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a graph: initializers and attributes, in bodies of If, Loop and Scan too."""
    yield from graph.initializer
    for node in graph.node:
        if not node.attribute:
            continue
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for body in bodies_of(node):
            yield from all_tensors(body)


def save_model(model: onnx.ModelProto, path: Path, *, weights_from: Path | None = None) -> None:
    """Write a model atomically.

    External weights that are still on disk (`weights_from` is the model file that they came with) are copied beside
    the new file. Weights in memory go to `<name>.data` when they are over 1 GiB in all.
    """
    import onnx

    raw = sum(len(t.raw_data) for t in model.graph.initializer)
    data = path.with_name(path.name + ".data")
    if weights_from is not None:
        read = [weights_from.parent / name for name in external_files(model)]
        require_distinct((path, data) if raw > EXTERNAL_ABOVE else (path,), read)
        for source, target in weights_to_copy(model, weights_from, path):
            with replacing(target) as temporary:
                shutil.copyfile(source, temporary)
    if raw > EXTERNAL_ABOVE:
        with replacing(data) as temporary:
            move_weights_out(model, temporary, data.name)
    with replacing(path) as temporary:
        try:
            temporary.write_bytes(model.SerializeToString(deterministic=True))
        except (ValueError, onnx.checker.ValidationError) as error:
            raise InvalidRequestError(
                f"'{path}' cannot be written: {error}", hint="are the weights over 2 GB?"
            ) from error


def move_weights_out(model: onnx.ModelProto, target: Path, location: str) -> None:
    """Write the initializers of 1 KiB and more into `target`; the model then names them under `location`."""
    import onnx

    with open(target, "wb") as stream:
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) < SMALL_BYTES:
                continue
            # Aligned to pages so that a reader may map the file.
            stream.seek(-stream.tell() % 4096, os.SEEK_CUR)
            offset, length = stream.tell(), len(tensor.raw_data)
            stream.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            del tensor.external_data[:]
            for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
                tensor.external_data.add(key=key, value=value)


def weights_to_copy(model: onnx.ModelProto, weights_from: Path, path: Path) -> list[tuple[Path, Path]]:
    """The external weights that a model written to another folder takes along, and where each goes.

    Raises InvalidRequestError where one is missing, and where its place holds the weights of another model.
    """
    import filecmp

    if weights_from.parent.resolve() == path.parent.resolve():
        return []
    copies: list[tuple[Path, Path]] = []
    for name in external_files(model):
        source, target = (weights_from.parent / name).resolve(), path.parent / name
        require_file(source, "external weights file")
        if not target.exists():
            copies.append((source, target))
        elif os.path.samefile(source, target):
            # A second name of the user's file would change with it, and with it what was proved; onnx takes none.
            if not target.is_symlink():
                copies.append((source, target))
        elif not (target.is_file() and filecmp.cmp(source, target, shallow=False)):
            if not _names_weights(path, target):
                raise InvalidRequestError(
                    f"'{target}' holds other weights than '{source}'", hint="write into a folder of its own"
                )
            copies.append((source, target))
    return copies


def require_weights(path: Path, model: onnx.ModelProto) -> None:
    """Raise InvalidRequestError where a file of external weights is missing or ends before a tensor that it holds."""
    import onnx

    for tensor in all_tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {e.key: e.value for e in tensor.external_data}
        file = path.parent / entries.get("location", "")
        require_file(file, "external weights file")
        end, size = int(entries.get("offset", 0)) + int(entries.get("length", 0)), file.stat().st_size
        if size < end:
            raise InvalidRequestError(
                f"the external weights file '{file}' is truncated: '{tensor.name}' ends at byte {end} of {size}",
                hint="copy it again, beside the model",
            )


def _names_weights(model: Path, weights: Path) -> bool:
    """True when the model that is about to be replaced is the one to which the weights belong."""
    if weights.name == model.name + ".data":
        return True
    if not model.is_file():
        return False
    try:
        return weights in model_files(model, load_model(model))
    except InvalidRequestError:
        return False


def set_metadata(model: onnx.ModelProto, key: str, value: str) -> None:
    """Set a metadata property of the model, replacing an older value."""
    for prop in model.metadata_props:
        if prop.key == key:
            prop.value = value
            return
    model.metadata_props.add(key=key, value=value)


def tensor_spec(value: onnx.ValueInfoProto) -> TensorSpec:
    """The spec of a graph input or output; an unnamed dynamic dim becomes `<name>_dim<i>`."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise InvalidRequestError(
            f"'{value.name}' is not a tensor", hint="sequences and optionals cannot go into an engine"
        )
    dims: list[Dim] = []
    for index, dim in enumerate(kind.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(int(dim.dim_value))
        else:
            dims.append(dim.dim_param or axis_name(value.name, index))
    return TensorSpec(value.name, dtype_from_onnx(kind.elem_type), tuple(dims))


def signature(model: onnx.ModelProto) -> Signature:
    """Inputs (without initializers that older files list among them), outputs, recorded shape space, opset."""
    props = {p.key: p.value for p in model.metadata_props}
    initializers = {t.name for t in model.graph.initializer}
    recorded = {s.name: s for s in (parse_tensor(t) for t in props.get(INPUTS_KEY, "").splitlines() if t)}
    inputs = [recorded.get(v.name) or tensor_spec(v) for v in model.graph.input if v.name not in initializers]
    opset = opset_of(model)
    space = parse_space([props.get(SPACE_KEY, "")])
    return Signature(tuple(inputs), tuple(tensor_spec(v) for v in model.graph.output), space, opset)
