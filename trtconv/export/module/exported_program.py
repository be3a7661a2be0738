"""Programs that `torch.export.save` wrote (`*.pt2`)."""

from __future__ import annotations

import inspect
import pickle
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.export.module.runner import take_named_inputs
from trtconv.export.program.archive import LEGACY_PROGRAM, ProgramArchive
from trtconv.export.program.expression import require_expression

if TYPE_CHECKING:
    from torch import nn


def load_program(path: Path) -> nn.Module:
    """The module of an exported program. Raises InvalidRequestError for any other file."""
    return _with_names(read_program(path))


def read_program(path: Path) -> Any:
    """The `torch.export.ExportedProgram` of a file. Raises InvalidRequestError when it is none."""
    require_file(path, "exported program")
    try:
        with ProgramArchive(path) as archive, _no_code_from_the_file(archive):
            program = _read_legacy(archive) if archive.is_legacy else _read(path)
    except InvalidRequestError:
        raise
    except pickle.UnpicklingError as error:
        raise InvalidRequestError(
            f"'{path}' holds objects besides tensors, and loading them could run code that they carry",
            hint="export the module without custom objects, or name the module itself (file.py:factory)",
        ) from error
    except Exception as error:
        text = str(error).strip().splitlines()
        raise InvalidRequestError(
            f"'{path}' is not an exported program of this torch: {text[0][:200] if text else type(error).__name__}",
            hint="write it with torch.export.save(torch.export.export(...), path)",
        ) from error
    return program


def _read(path: Path) -> Any:
    from torch.export.pt2_archive import _package

    return _package.load_pt2(str(path)).exported_programs["model"]


def _read_legacy(archive: ProgramArchive) -> Any:
    """The layout of torch up to 2.7, of which torch.export.load would read every member by itself."""
    from torch._export.serde.serialize import SerializedArtifact, deserialize

    names = archive.get_file_names()

    def content(stem: str) -> bytes:
        return next((archive.read_bytes(n) for n in (f"{stem}.pt", f"{stem}.json") if n in names), b"")

    return deserialize(
        SerializedArtifact(
            archive.read_bytes(LEGACY_PROGRAM),
            content("serialized_state_dict"),
            content("serialized_constants"),
            content("serialized_example_inputs"),
        )
    )


@contextmanager
def _no_code_from_the_file(archive: ProgramArchive) -> Iterator[None]:
    """What torch reads comes from `archive`; what it unpickles are tensors; what it evaluates is in the grammar."""
    import torch
    from torch._export.serde.serialize import GraphModuleDeserializer
    from torch.export.pt2_archive import _package

    plain, evaluate = torch.load, GraphModuleDeserializer._parse_sym_expr

    def tensors_only(*args: Any, **options: Any) -> Any:
        return plain(*args, **{**options, "weights_only": True})

    def refuse(*_: Any, **__: Any) -> Any:
        raise pickle.UnpicklingError("an object that is not a tensor")

    def only_sizes(deserializer: Any, expression: Any, *args: Any, **options: Any) -> Any:
        # The archive's JSON was checked; this also holds for what comes by another way, such as a pickled fake tensor.
        if isinstance(expression, str):
            require_expression(expression)
        return evaluate(deserializer, expression, *args, **options)

    with (
        mock.patch.object(torch, "load", tensors_only),
        mock.patch.object(torch._C, "_pickle_load_obj", refuse),
        mock.patch.object(_package, "pickle", types.SimpleNamespace(loads=refuse, load=refuse)),
        mock.patch.object(_package, "PT2ArchiveReader", return_value=archive),
        mock.patch.object(_package, "_load_aoti", refuse),
        mock.patch.object(GraphModuleDeserializer, "_parse_sym_expr", only_sizes),
    ):
        yield


def _with_names(program: Any) -> nn.Module:
    """A module that takes the program's inputs by name, whether its author passed them by position or by name."""
    from torch import nn

    inner = program.module(check_guards=False)
    positional, keywords = program.module_call_graph[0].signature.in_spec.children()
    names = list(inspect.signature(inner.forward).parameters)
    first = names[: positional.num_children]
    parameter = inspect.Parameter

    class Program(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.program = inner
            self.training = False

        def forward(self, **inputs: Any) -> Any:
            return self.program(*(inputs[n] for n in first), **{n: inputs[n] for n in keywords.context or ()})

    signature = inspect.Signature([parameter(n, parameter.POSITIONAL_OR_KEYWORD) for n in names])
    return take_named_inputs(Program(), signature)
