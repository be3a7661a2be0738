"""All rules over one graph, until none fires, in an opset that they and the target have."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from trtconv.core.model.opset import opset_of
from trtconv.core.progress import Progress
from trtconv.rewrite.engine.refuse import advice, drawing_note, lacking, refuse_silently_wrong, tie_note
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, apply_rules
from trtconv.rewrite.engine.rule import Rule
from trtconv.rewrite.graph.fragment import with_plugin_bodies
from trtconv.rewrite.graph.tidy import Leftovers, tidy
from trtconv.rewrite.graph.valid import require_valid
from trtconv.rewrite.lowering.early_exits import cut_early_exits
from trtconv.rewrite.lowering.inline import inline_functions
from trtconv.rewrite.lowering.level_branches import level_branches
from trtconv.rewrite.lowering.lower import lower_opset
from trtconv.rewrite.lowering.raise_opset import raise_opset, sayable_opset
from trtconv.rewrite.lowering.settled_ifs import settle_ifs
from trtconv.rewrite.lowering.spelling import gather_infinities, spell_for_parsers
from trtconv.rewrite.rules.cleanup.fold_constants import RULE as FOLD_CONSTANTS

# Leftovers are tidied with the rules of the cleanup group, and left when the user left those out.
TIDY = FOLD_CONSTANTS.name
MAX_PASSES = 4


def rewrite_graph(
    original: onnx.ModelProto, rules: Sequence[Rule], setting: RewriteSetting, progress: Progress, *, level: bool = True
) -> tuple[onnx.ModelProto, RewriteRecord]:
    """A rewritten copy of a model and what was done. Raises UnsupportedError for what the target gets wrong.

    Where the graph's opset keeps rules from it, the copy begins in the opset that they need.
    """
    model, record = _prepared(original, setting, level=level)
    apply_rules(model, rules, setting, progress, record)
    needed = max(record.needed_opset, sayable_opset(original))
    raised = _raised(original, needed, setting)
    if raised is not None:
        setting.changed()
        model, record = _prepared(raised, setting, level=level)
        record.notes.append(f"written in opset {opset_of(raised)} (it had {opset_of(original)}), which rules need")
        apply_rules(model, rules, setting, progress, record)
    tidies = TIDY in [r.name for r in rules]
    for remaining in reversed(range(MAX_PASSES)):
        entries = len(record.entries)
        lower_opset(model, setting, progress, record)
        spell_for_parsers(model, setting.target)
        with_plugin_bodies(model, record.plugins.values())
        leftovers = tidy(model, setting.target) if tidies else Leftovers()
        record.notes += leftovers.notes()
        # What nobody used may have stood between a rule and its pattern, and another opset may make one.
        if not remaining or (not leftovers.hid_patterns and len(record.entries) == entries):
            break
        apply_rules(model, rules, setting, progress, record)
    if setting.target.generation == 8:
        gather_infinities(model)
    refuse_silently_wrong(model, setting.target, record.skipped)
    record.notes += [*advice(record.skipped), *lacking(model, setting.target, record.skipped)]
    record.notes += [*drawing_note(model), *tie_note(record.entries)]
    if record.entries:
        require_valid(original, model)
    return model, record


def _prepared(
    original: onnx.ModelProto, setting: RewriteSetting, *, level: bool
) -> tuple[onnx.ModelProto, RewriteRecord]:
    """A copy without local functions and with settled and level branches, and a record that says so."""
    model, record = onnx.ModelProto(), RewriteRecord()
    model.CopyFrom(original)
    model, inlined = inline_functions(model)
    if inlined:
        record.notes.append(f"{inlined} local functions were written out at their calls")
    cut_early_exits(model, setting, record)
    model = settle_ifs(model, setting, record)
    return (level_branches(model, setting, record) if level else model), record


def _raised(original: onnx.ModelProto, needed: int, setting: RewriteSetting) -> onnx.ModelProto | None:
    """The model in the opset that rules need; None where it has that, or the target does not read it."""
    if not opset_of(original) < needed <= setting.target.max_opset:
        return None
    return raise_opset(original, needed)
