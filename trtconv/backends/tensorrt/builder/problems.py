"""Nodes that TensorRT refuses, told with the PyTorch module and source line that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Capabilities, NodeProblem
from trtconv.backends.tensorrt.builder.nested_ifs import ASSERTION, fixing_hint, nested_error
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.model.provenance import Origin, origin_of

if TYPE_CHECKING:
    import onnx

_SHOWN = 40
_REFUSALS = (
    "could not find any implementation",
    "no runners that implement",
    "not supported",
    "unsupported",
    "is not implemented",
    "not yet implemented",
    "exceeds the maximum value allowed",
)
_SIZED_BY_DATA = ("NonZero", "NonMaxSuppression", "Compress", "Unique")
BY_DATA_HINT = "the values decide the size of its result: --nms topk fixes it (`trtconv help data-dependent-sizes`)"
# Without a suppression the rows may be used in ways that no fixed number of them serves.
CHOSEN_HINT = (
    "the values decide the size of its result: choose with torch.where or torch.topk instead; --nms topk fixes it "
    "where whole rows are the result (`trtconv help data-dependent-sizes`)"
)
UNIQUE_HINT = (
    "the values decide the size of its result: F.one_hot(x, classes).sum(0) > 0 tells which values there are "
    "(`trtconv help data-dependent-sizes`)"
)
# Operators that quantising a network with ONNX Runtime leaves, and that no rule could put into floats.
_QUANTISED = ("Integer", "QLinear", "DynamicQuantize", "QAttention", "QGemm", "QEmbed", "MatMulNBits")
_NOT_IN_WHEELS = "nvinfer_vc_plugin"
WHEEL_HINT = (
    "the library is in TensorRT's tar and Debian packages and in no wheel: install it from there, or give RoiAlign a "
    "fixed sampling_ratio and the mode avg, which the rule roi-align then writes without it"
)
_MEMORY = ("out of memory", "outofmemory", "insufficient memory", "cudaerrormemoryallocation", "not enough memory")
# What a builder says (in lower case) that something else than the graph's operators is at fault for.
_KNOWN = {
    # For a plugin 8.6 loads cuBLAS and cuDNN, to hand it their handles, unless they are not tactic sources.
    "check function name against library symbol": "TensorRT 8.6 wants cuBLAS and cuDNN for a plugin and did not find "
    "whole ones: install both, or, if the plugin needs neither, build with "
    "--option tactic_sources=EDGE_MASK_CONVOLUTIONS,JIT_CONVOLUTIONS",
    "violate shape constraints": "the graph is undefined at sizes of the range: add --align, or pad the inputs with "
    "`trtconv rewrite --pad-to-multiple` (`trtconv help odd-sizes`)",
    # RTX 1.7, of a loop whose body cuts a part whose place depends on the step.
    "makescopenodescontiguous": "TensorRT-RTX builds no loop with a slice that moves (`x[:, t : t + 3]`): take its "
    "rows one by one (`x[:, t]`, `x[:, t + 1]`)",
    "residual->extent == output->extent": "a resized map is added to one whose size is another expression of the "
    "input's: `trtconv rewrite --target tensorrt==8.6` (rule resize-like-summand), or build with fixed sizes",
}


def unsupported_error(
    problems: Iterable[NodeProblem],
    model: onnx.ModelProto,
    path: Path,
    capabilities: Capabilities,
    *,
    otherwise: str = "",
) -> UnsupportedError:
    """One error that lists every node, with the remedy for its kind, else `otherwise`.

    `where` is the source line of the first node that has one.
    """
    listed = tuple(problems)
    details, where = _located(listed, model)
    more = [f"and {len(details) - _SHOWN} more"] if len(details) > _SHOWN else []
    nodes = "a node" if len(listed) == 1 else f"{len(listed)} nodes"
    hint = otherwise
    if any(p.op_type in _SIZED_BY_DATA for p in listed):
        hint = _hint_of_sizes(model)
    elif any(word in p.op_type for p in listed for word in _QUANTISED):
        hint = "convert the file from before it was quantised, or quantise that one anew to QuantizeLinear and "
        hint += "DequantizeLinear pairs (quant_format=QDQ, int8, symmetric)"
    elif any(_NOT_IN_WHEELS in p.message for p in listed):
        hint = WHEEL_HINT
    elif any(n.domain == "com.microsoft" for n in model.graph.node):
        hint = "ONNX Runtime's own operators: convert the file from before its optimizer ran"
    return UnsupportedError(
        f"{capabilities} does not take {nodes} of {path}",
        details=details[:_SHOWN] + more,
        where=where,
        hint=hint or "see `trtconv rules` for what a rewrite can change, or change the module at the lines named",
    )


def unparsed(lines: tuple[str, ...], path: Path, capabilities: Capabilities) -> TrtconvError:
    """The error for a parser that fails and names no node: what it wrote meanwhile."""
    details = lines or ("the parser gave no reason",)
    hint = WHEEL_HINT if any(_NOT_IN_WHEELS in line for line in lines) else None
    return TrtconvError(f"{capabilities} cannot parse {path}", details=details, hint=hint)


def origin_in(model: onnx.ModelProto, problem: NodeProblem) -> Origin:
    """Where the node comes from in the PyTorch code; an empty origin when the graph does not say."""
    node = _find(model, problem)
    return origin_of(node) if node is not None else Origin()


def describe(problem: NodeProblem, origin: Origin) -> str:
    """`Conv 'conv_3' from backbone.conv4 (net.py:12): words of the parser`."""
    name = f" '{problem.node}'" if problem.node else f" #{problem.index}" if problem.index >= 0 else ""
    source_text = f" from {origin}" if origin else ""
    return f"{problem.op_type or 'node'}{name}{source_text}: {problem.message}"


def _find(model: onnx.ModelProto, problem: NodeProblem) -> Any:
    if problem.node:
        for node in model.graph.node:
            if node.name == problem.node:
                return node
    if 0 <= problem.index < len(model.graph.node):
        return model.graph.node[problem.index]
    return None


def build_failure(
    lines: tuple[str, ...], model: onnx.ModelProto, path: Path, capabilities: Capabilities
) -> TrtconvError:
    """The error for a build that returned nothing: its lines, and the nodes whose names they mention."""
    text = "\n".join(lines).lower()
    if ASSERTION in text and (nested := nested_error(model, str(capabilities), path)) is not None:
        return nested
    if any(word in text for word in _MEMORY):
        return TrtconvError(
            f"{capabilities} ran out of memory while building {path}",
            details=lines[:_SHOWN],
            hint="close what else uses the GPU, lower --workspace, or narrow the ranges (max shapes)",
        )
    problems = tuple(p for line in lines for p in named_nodes(line, model))
    if problems and any(word in text for word in _REFUSALS):
        return unsupported_error(problems, model, path, capabilities)
    located, where = _located(problems, model)
    otherwise = "run again with -v for all of the builder's messages"
    # The branch that nobody takes fails first.
    if any(word in text for word in _REFUSALS) and any(n.op_type in _SIZED_BY_DATA for n in model.graph.node):
        # The builder's own names of nodes without one are not in the file.
        otherwise = f"of NonZero or NonMaxSuppression {_hint_of_sizes(model)}"
    hint = fixing_hint(model) or next((h for word, h in _KNOWN.items() if word in text), otherwise)
    return TrtconvError(
        f"{capabilities} could not build {path}",
        details=(located or list(lines))[:_SHOWN] or ["it gave no reason"],
        hint=hint,
        where=where,
    )


def _located(problems: Sequence[NodeProblem], model: onnx.ModelProto) -> tuple[list[str], str | None]:
    """Each problem in words, and the source line of the first node that has one."""
    origins = [origin_in(model, p) for p in problems]
    details = [describe(p, o) for p, o in zip(problems, origins, strict=True)]
    return details, next((o.source for o in origins if o.source), None)


def _hint_of_sizes(model: onnx.ModelProto) -> str:
    """What to do about the operators of a graph that are sized by data."""
    operators = {n.op_type for n in model.graph.node}
    if "NonMaxSuppression" in operators:
        return BY_DATA_HINT
    return UNIQUE_HINT if "Unique" in operators else CHOSEN_HINT


def named_nodes(line: str, model: onnx.ModelProto) -> tuple[NodeProblem, ...]:
    """A problem for every node of the graph that a builder's line names; at most the ends of a fused region."""
    import re

    tokens = set(re.findall(r"[^\s\[\]{}()'\",:]+", line.replace("...", " ").replace("ONNX Layer: ", " ")))
    # Myelin's operations have names of their own: `name=node_upsample_resize` is made of the node `node_upsample`.
    for operation in re.findall(r"\bname=([^\s,()]+)", line):
        beginnings = [n.name for n in model.graph.node if n.name and f"{operation}_".startswith(f"{n.name}_")]
        tokens.update(sorted(beginnings, key=len)[-1:])
    hits = [(i, n) for i, n in enumerate(model.graph.node) if n.name and n.name in tokens]
    return tuple(NodeProblem(line, n.name, n.op_type, i) for i, n in hits)
