"""What torch.jit.script means when it does not take a function, and what of a script a file cannot hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from trtconv.core.errors import UnsupportedError

_NONE = re.compile(r"Variable '(\w+)' previously had type NoneType")
_TYPES = re.compile(r"instead found type '([^']+)'")
_MARKED = re.compile(r"^(.*)\n\s*[~^]+ <--- HERE", re.MULTILINE)
_KIND = re.compile(r"^(.+?) (?:aren't|isn't|are not|is not) supported:?$")
_CALL = "Arguments for call are not valid"
# What one form of a function lacks: its schema, and the argument that does not fit in the line behind it.
_SCHEMA = re.compile(r"^[\w:.]+\(.*\) -> .*:$")
_NAMESPACES_OF_TORCH = ("aten", "prim", "prims", "onnx", "torchvision", "quantized")


class UnseenWriteError(UnsupportedError):
    """An operator of the user's writes what it is given: a file would not have it, on whichever path it lies."""


def why_no_script(error: Exception) -> str:
    """The reason that an error of the compiler gives; with the user's code where its first line tells nothing."""
    text = str(error).strip()
    starts_as_none = _NONE.search(text)
    if starts_as_none is not None:
        return f"'{starts_as_none[1]}' is None before it and a tensor in it, and a loop of a file carries on one type"
    first = text.split("\n")[0] or repr(error)
    marked = _MARKED.search(text)
    kind = _KIND.match(first)
    if kind is not None and marked is not None:
        return f"`{marked[1].strip()}` has a form that loops of files lack ({kind[1]})"
    if marked is None or not (first.startswith(_CALL) or _SCHEMA.match(first)):
        return first.removesuffix(":")
    code = marked[1].strip()
    if any("NoneType" in kind or kind.startswith("Optional") for kind in _TYPES.findall(text)):
        return f"`{code}` takes what may be None at some steps"
    return f"`{code}` has no form for the types of its operands"


def require_one_name_each(graph: Any) -> None:
    """Raise UnsupportedError where a list of a script may have two names, and something is written into it.

    `keep = s` in a branch, and `s[0] = ...` behind it: in Python both are one list. A sequence of ONNX is a value, and
    behind the branch there are two.
    """
    writes = graph.alias_db()
    spans: dict[Any, tuple[int, int]] = {}
    handed_on: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    lists: dict[str, Any] = {}
    for node in _walk(graph, spans):
        for value in (*node.inputs(), *node.outputs()):
            if value.type().kind() == "ListType":
                lists[value.debugName()] = value
        carried = list(node.inputs())[2:] if node.kind() == "prim::Loop" else []
        for position, value in enumerate(carried):
            handed_on[value.debugName()].append((node, position))
        for block in node.blocks():
            for position, value in enumerate(block.outputs()):
                if value.type().kind() == "ListType":
                    lists[value.debugName()] = value
                handed_on[value.debugName()].append((node, position))
    for name, value in lists.items():
        receivers = dict.fromkeys(handed_on[name])
        if not receivers or not writes.has_writers(value):
            continue
        (first, _), *others = receivers
        users = [use.user for use in value.uses() if use.user in spans]
        if others or any(_reads_behind(user, first, value, spans) for user in users):
            raise UnsupportedError(
                "a list has a second name from a branch or a loop on and is written under one of both: in a file they "
                f"are two lists{_line_of(first)}",
                hint="copy it where it gets the second name (list(rows)), or write a new list",
            )


def _walk(block: Any, spans: dict[Any, tuple[int, int]]) -> Iterator[Any]:
    """All nodes; `spans` has the numbers of each one and of the last in it."""
    for node in block.nodes():
        first = len(spans)
        spans[node] = first, first
        yield node
        for inner in node.blocks():
            yield from _walk(inner, spans)
        spans[node] = first, len(spans) - 1


def _reads_behind(user: Any, receiver: Any, value: Any, spans: dict[Any, tuple[int, int]]) -> bool:
    """True for a node that has the list by its first name where the second is known."""
    at, (first, last) = spans[user][0], spans[receiver]
    carried = receiver.inputs() if receiver.kind() == "prim::Loop" else ()
    is_carried = any(v.debugName() == value.debugName() for v in carried)
    return at > last or (is_carried and first < at)


def _line_of(node: Any) -> str:
    line = node.sourceRange().strip().split("\n")[0]
    return f" ({line})" if line else ""


@contextmanager
def scripts_without_data() -> Iterator[None]:
    """Scripts that make tensors of lists raise UnsupportedError in the block, where tensors have no data.

    torch.jit writes the numbers of the list into the memory of the tensor, which a FakeTensor has not: SIGSEGV.
    """
    import torch

    # Kept, so that no other script gets their identity.
    without_lists: dict[int, Any] = {}

    def guarded(call: Any) -> Any:
        def run(script: Any, *args: Any, **named: Any) -> Any:
            if id(script) not in without_lists:
                node = next(filter(_is_of_list, _walk(script.inlined_graph, {})), None)
                if node is not None:
                    raise UnsupportedError(
                        f"a script makes a tensor of a list{_line_of(node)}",
                        hint="write it as torch.full([1], size), or make the tensor outside of the script",
                    )
                without_lists[id(script)] = script
            return call(script, *args, **named)

        return run

    with ExitStack() as stack:
        for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
            stack.enter_context(mock.patch.object(kind, "__call__", guarded(kind.__call__)))
        yield


def _is_of_list(node: Any) -> bool:
    return node.kind() in ("aten::tensor", "aten::as_tensor") and node.inputsAt(0).type().kind() == "ListType"


def require_no_object(graph: Any) -> None:
    """Raise UnsupportedError for a graph with a scripted object whose members are set: torch.onnx dies of it."""
    nodes = list(_walk(graph, {}))
    objects = [n for n in nodes if n.kind() == "prim::CreateObject"]
    names = {n.output().debugName() for n in objects}
    written = next((n for n in nodes if n.kind() == "prim::SetAttr" and n.inputsAt(0).debugName() in names), None)
    if written is not None:
        raise UnsupportedError(
            f"a scripted class keeps a state in its members{_line_of(written)}",
            hint="carry the state in variables of the function",
        )


def require_no_custom_writes(graph: Any) -> None:
    """Raise UnseenWriteError for an operator of the user's that writes what it is given.

    torch.onnx leaves out a node without outputs: what it writes would not be in the file.
    """
    for node in _walk(graph, {}):
        if node.kind().split("::")[0] not in _NAMESPACES_OF_TORCH and "!" in node.schema():
            raise UnseenWriteError(
                f"the operator {node.kind()} writes what it is given in place, and no exporter has a form of that",
                hint="write it as an operator that returns its result and has a form, or as functions of torch",
            )
