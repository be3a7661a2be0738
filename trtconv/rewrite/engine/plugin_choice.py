"""`--plugins auto|never|NAME,...`: which plugin rules are used at all, and with auto, where each may fire."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.ledger.records import LedgerEntry, Skipped
from trtconv.core.model.inference import without_weights
from trtconv.core.precision import HALVES, TYPED
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, PluginDescription
from trtconv.plugins.libraries.finding import why_not_loadable
from trtconv.plugins.measured import PluginTiming, PluginVerdict, judge, load_measurements
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.concrete import ConcreteShapes
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.replacement import build_replacement

if TYPE_CHECKING:
    import onnx

DTYPES = {p.onnx: p.dtype for p in TYPED}
AUTO, NEVER = "auto", "never"


def require_known(request: RewriteRequest, rules: Sequence[Rule]) -> None:
    """Raise InvalidRequestError for a name that is not a plugin of trtconv's or of `rules`, or a target without any."""
    plugin_names = dict.fromkeys([*(p.op_type for p in PLUGINS), *(r.plugin for r in rules if r.plugin)])
    named = named_plugins(request)
    for name in sorted(named):
        if name not in plugin_names:
            raise InvalidRequestError(
                f"there is no plugin '{name}'{did_you_mean(name, plugin_names)}",
                hint=f"one of {', '.join(plugin_names)}; a plugin of your own comes with --rules FILE",
            )
    choices = _plugin_words(request)
    if NEVER in choices and len(choices) > 1:
        raise InvalidRequestError("--plugins never stands alone", hint="leave 'never' out, or the names")
    if named and not request.target.has_plugins:
        raise InvalidRequestError(
            f"{request.target} has no plugins", hint="leave --plugins out, or choose another target"
        )


def named_plugins(request: RewriteRequest) -> frozenset[str]:
    """The op types that the request names, whatever is measured of them."""
    return frozenset(w for w in _plugin_words(request) if w not in (AUTO, NEVER))


def _plugin_words(request: RewriteRequest) -> list[str]:
    return [w.strip() for w in request.plugins.split(",") if w.strip()]


def with_plugin_rules(rules: Sequence[Rule], request: RewriteRequest) -> tuple[Rule, ...]:
    """The rules without those of plugins that nobody asked for, and without the native forms of those named."""
    named = named_plugins(request)
    auto = is_auto(request) and request.target.has_plugins
    return tuple(r for r in rules if (not r.plugin or auto or r.plugin in named) and r.native_of not in named)


def is_auto(request: RewriteRequest) -> bool:
    """True when the measurements are to decide, at least of the plugins that are not named."""
    return AUTO in _plugin_words(request)


def select_paying_rules(
    rules: Sequence[Rule],
    request: RewriteRequest,
    model: onnx.ModelProto,
    space: ShapeSpace,
    specs: tuple[TensorSpec, ...],
    declined: dict[tuple[str, str], Skipped],
) -> tuple[Rule, ...]:
    """With `auto`: rules that make plugin nodes fire where it pays, those that take them apart everywhere else.

    Where one does not fire the reason is put into `declined`, by rule and node: another rule may take the node, and
    then nothing of the last round says why the plugin was not used.
    """
    if not is_auto(request) or not request.target.has_plugins:
        return tuple(rules)
    choice = PluginChooser(request, model, space, specs)
    named = named_plugins(request)
    return tuple(
        r if not (r.plugin or r.native_of) or r.plugin in named else _with_judgement(r, choice, declined) for r in rules
    )


def with_declined(
    skipped: Sequence[Skipped], entries: Sequence[LedgerEntry], declined: Mapping[tuple[str, str], Skipped]
) -> tuple[Skipped, ...]:
    """The skips of the last round, and those of plugins at nodes that other rules have taken meanwhile."""
    settled = {(s.rule, s.node) for s in skipped} | {(e.rule, e.node) for e in entries}
    return (*skipped, *(s for key, s in declined.items() if key not in settled))


def _with_judgement(rule: Rule, choice: PluginChooser, declined: dict[tuple[str, str], Skipped]) -> Rule:
    def find(graph: Graph, node: Node) -> Found | Skip:
        match = rule.find(graph, node)
        if not isinstance(match, Found):
            return match
        verdict = choice.of_match(graph, match, rule.plugin) if rule.plugin else choice.of_node(graph, node)
        if verdict.pays is not bool(rule.plugin):
            skip = Skip(f"plugins auto: {verdict.reason}")
            if rule.plugin:
                declined[rule.name, node.name] = Skipped(rule.name, node.name, skip.reason, node.origin)
            return skip
        note = f"{match.note}; " if match.note else ""
        return replace(match, note=f"{note}plugins auto: {verdict.reason}")

    return replace(rule, find=find)


@dataclass(frozen=True)
class PluginChooser:
    """What `auto` knows: target and libraries of the request, the shapes of the model at opt, the measurements."""

    request: RewriteRequest
    model: onnx.ModelProto
    space: ShapeSpace
    specs: tuple[TensorSpec, ...]

    def of_match(self, graph: Graph, match: Found, op_type: str) -> PluginVerdict:
        """The verdict for the node that a rule would make: it is built for a look at its inputs and attributes."""
        replacement = build_replacement(graph, f"{match.root.output}/auto", match.build)
        plugin_node = next((n for n in replacement.nodes if (n.domain, n.op_type) == (NAMESPACE, op_type)), None)
        if plugin_node is None:
            return PluginVerdict(False, f"the rule makes no {op_type} here")
        return self.of_node(graph, Node(plugin_node, 0.0))

    def of_node(self, graph: Graph, node: Node) -> PluginVerdict:
        """The verdict for a plugin node whose first input is the data."""
        plugin = next((p for p in PLUGINS if p.op_type == node.op), None)
        if plugin is None:
            return PluginVerdict(False, f"no measurement of {node.op}; name it in --plugins to use it")
        reason = self._refused(plugin)
        if reason:
            return PluginVerdict(False, reason)
        dtype, shape = DTYPES.get(graph.dtype(node.inputs[0]), ""), self.shape_at_opt(graph, node.inputs[0])
        if not dtype or shape is None:
            return PluginVerdict(False, "its element type or its shape at opt is not known")
        dtype = self._typed(dtype)
        attributes = {a.name: value for a in plugin.attributes if (value := node.attr(a.name)) is not None}
        rest = [self.shape_at_opt(graph, i) or (None,) for i in node.inputs[1:]]
        outputs = plugin.output_shapes([shape, *rest], attributes)
        elements = math.prod(shape) + sum(math.prod(d or 0 for d in out) for out in outputs)
        moved = elements * (4 if dtype == "float32" else 2)
        return judge(self._measurements, node.op, dtype, moved, self.request.target.generation)

    def shape_at_opt(self, graph: Graph, name: str) -> tuple[int, ...] | None:
        """The shape of a value at opt: by the names of its dims, else inferred with opt's sizes in the first model."""
        dims, sizes = graph.dims(name), self._sizes
        if dims is not None and all(isinstance(d, int) or d in sizes for d in dims):
            return tuple(d if isinstance(d, int) else sizes[str(d)] for d in dims)
        return self._concrete.shape(name)

    def _typed(self, dtype: str) -> str:
        """The element type that the node has once the graph is typed, which comes after the rules."""
        half = {p.name: p.dtype for p in HALVES}.get(self.request.precision, dtype)
        return half if dtype == "float32" else dtype

    def _refused(self, plugin: PluginDescription) -> str:
        generation = self.request.target.generation
        if generation not in plugin.generations:
            return f"{plugin.op_type} is not made for TensorRT {generation}"
        return why_not_loadable(plugin.op_type, self.request.plugin_libraries, generation)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return dict(self.space.pick("opt"))

    @cached_property
    def _measurements(self) -> tuple[PluginTiming, ...]:
        return load_measurements()

    @cached_property
    def _concrete(self) -> ConcreteShapes:
        return ConcreteShapes(without_weights(self.model), self.specs, self._sizes)
