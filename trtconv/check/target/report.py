"""Whether a target supports a graph: a verdict per node, without a GPU, at the module's source line.

Where `tensorrt-rtx` is installed, its own parser decides, since it runs anywhere. For TensorRT 8.6, 10 and 11 (and RTX
where it is absent) the tables of `support/` answer, each entry with its evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.target.node_facts import GraphFacts, NodeFacts, read_facts
from trtconv.check.target.undefined_sizes import find_undefined_sizes
from trtconv.check.target.verdicts import NodeVerdict, judge_by_table, refusal
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.model.file import load_model, signature
from trtconv.core.model.provenance import rule_of
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.report import CheckReport, Finding
from trtconv.core.targets import Target
from trtconv.core.targets.table import SupportTable, load_table
from trtconv.core.tolerance import NO_LIMITS

if TYPE_CHECKING:
    import onnx

    from trtconv.backends.protocol import NodeProblem

# (model, target, where to write) -> the rewrites that were made: rule, and the names of the nodes that it replaced.
Rewriter = Callable[[Path, Target, Path], Sequence[tuple[str, tuple[str, ...]]]]


@dataclass(frozen=True)
class TargetReport:
    """A verdict for each node of the file, in graph order. `judged_by` says what answered.

    `graph` are errors of the file as a whole: an opset that is too new, sizes for which the graph is undefined.
    """

    subject: str
    target: Target
    judged_by: str
    nodes: tuple[NodeVerdict, ...]
    graph: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def refused(self) -> tuple[NodeVerdict, ...]:
        """The nodes that the target does not take, or takes and computes wrongly."""
        return tuple(n for n in self.nodes if n.status in ("refused", "wrong"))

    @property
    def passed(self) -> bool:
        """True when nothing is refused and the graph is defined everywhere."""
        return not self.refused and not any(f.level == "error" for f in self.graph)

    @property
    def exit_code(self) -> int:
        """0, or 4 when a node is refused."""
        return 0 if self.passed else UnsupportedError.exit_code

    @property
    def findings(self) -> tuple[Finding, ...]:
        """An error for each refused node, a note for each that needs a plugin library."""
        node_findings = [
            Finding("error", "unsupported", n.message, n.remedy, n.node, n.origin.module, n.origin.source)
            for n in self.refused
        ]
        plugins = [n for n in self.nodes if n.status == "plugin"]
        node_findings += [
            Finding("note", "unsupported", n.message, n.remedy, n.node, n.origin.module, n.origin.source)
            for n in plugins
        ]
        return (*self.graph, *node_findings, *(Finding("note", "unsupported", text) for text in self.notes))

    def as_check_report(self) -> CheckReport:
        """The findings as a report that the reporters of `trtconv check` print (SARIF, JUnit, GitHub, ...)."""
        return CheckReport(
            subject=self.subject,
            subject_kind="onnx",
            reference="",
            runner=f"{self.judged_by}, for {self.target}",
            tolerance=NO_LIMITS,
            comparisons=(),
            findings=self.findings,
            static=True,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "passed": self.passed,
            "subject": self.subject,
            "target": str(self.target),
            "judged_by": self.judged_by,
            "counts": dict(Counter(n.status for n in self.nodes)),
            "nodes": [n.as_dict() for n in self.nodes],
            "graph": [asdict(f) for f in self.graph],
            "notes": list(self.notes),
        }


def check_target(
    model: Path,
    target: Target,
    progress: Progress | None = None,
    *,
    rewriter: Rewriter | None = None,
    sizes: bool = True,
) -> TargetReport:
    """Judge every node of `model` for `target`; with `rewriter`, of what the rewrite rules make of it.

    With `sizes` the graph is also run in ONNX Runtime over its recorded shape space, to find sizes for which it is
    undefined. Raises InvalidRequestError when the file is not an ONNX model.
    """
    progress = progress or SilentProgress()
    original = load_model(model)
    with private_temporary_folder("target") as folder:
        path = model
        entries: tuple[tuple[str, tuple[str, ...]], ...] = ()
        notes: tuple[str, ...] = ()
        if rewriter is not None:
            progress.phase("rewriting")
            path, entries, notes = _rewritten(rewriter, model, target, Path(folder))
        progress.phase("judging the nodes")
        final = original if path == model else load_model(path)
        table = load_table(target)
        judged_by, problems, refused = _judge(path, final, target, table)
    rewritten = {name: rule for rule, names in entries for name in names if name}
    verdicts = _verdicts(original, final, problems, rewritten)
    graph = refused + _too_new(final, target, table)
    if sizes:
        undefined, unprobed = find_undefined_sizes(model, progress)
        graph, notes = graph + undefined, notes + unprobed
    return TargetReport(str(model), target, judged_by, verdicts, graph, notes)


def _too_new(model: onnx.ModelProto, target: Target, table: SupportTable) -> tuple[Finding, ...]:
    """TensorRT 8.6 reads newer opsets and drops what came with them; later ones say what they do not know."""
    opset = signature(model).opset
    if not target.facts.drops_newer_opsets or opset <= table.max_opset:
        return ()
    message = f"the graph has opset {opset}; {target} silently drops what came after {table.max_opset}"
    return (Finding("error", "unsupported", message, f"rewrite it: trtconv rewrite --target {target}"),)


def _rewritten(
    rewriter: Rewriter, model: Path, target: Target, folder: Path
) -> tuple[Path, tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """What the rules make of the model; where they refuse it, the model as it is."""
    output = folder / model.name
    try:
        return output, tuple(rewriter(model, target, output)), ()
    except UnsupportedError as error:
        return model, (), (f"not rewritten: {error.message}",)


def _judge(
    path: Path, model: onnx.ModelProto, target: Target, table: SupportTable
) -> tuple[str, dict[int, NodeVerdict], tuple[Finding, ...]]:
    """Who answered, the verdicts by index of the main graph's node (nodes that are fine are not in it), and what was
    refused without naming a node, an input's type for instance."""
    facts = read_facts(model)
    if target.is_rtx:
        answer = _ask_rtx(path)
        if answer is not None:
            return answer[0], *_of_problems(answer[1], facts, target, table)
    verdicts: dict[int, NodeVerdict] = {}
    for node in facts.nodes:
        verdict = judge_by_table(node, facts, target, table)
        if verdict.status != "supported":
            verdicts.setdefault(node.top, verdict)
    return "table of measurements and documented support", verdicts, ()


def _ask_rtx(path: Path) -> tuple[str, tuple[NodeProblem, ...]] | None:
    from trtconv.backends.select import choose_backend

    try:
        backend = choose_backend("tensorrt-rtx")
        return f"the parser of {backend.capabilities()}", backend.supports(path)
    except TrtconvError:
        return None


def _of_problems(
    problems: Iterable[NodeProblem], facts: GraphFacts, target: Target, table: SupportTable
) -> tuple[dict[int, NodeVerdict], tuple[Finding, ...]]:
    """The parser's words with the table's remedy; and what the parser takes and the builder is known to refuse."""
    verdicts: dict[int, NodeVerdict] = {}
    nameless: list[Finding] = []
    tops = {n.top: n for n in reversed(facts.nodes)}
    named = {n.name: n.top for n in facts.nodes if n.name}
    for problem in problems:
        index = named.get(problem.node, problem.index)
        node = tops.get(index)
        if node is not None:
            table_verdict = judge_by_table(node, facts, target, table)
            verdicts[index] = refusal(node, f"{target} refuses it: {problem.message}", table_verdict)
        else:
            message = f"{target} refuses the graph: {problem.message}"
            nameless.append(Finding("error", "unsupported", message, "is it the type of an input or of a weight?"))
    for node in facts.nodes:
        verdict = judge_by_table(node, facts, target, table)
        if verdict.status in ("refused", "wrong") and "build fails" in verdict.evidence:
            verdicts.setdefault(node.top, verdict)
    return verdicts, tuple(nameless)


def _verdicts(
    original: onnx.ModelProto, final: onnx.ModelProto, problems: dict[int, NodeVerdict], rewritten: dict[str, str]
) -> tuple[NodeVerdict, ...]:
    """One verdict per node of the original file, and one per refused node that a rule made."""
    by_name = {final.graph.node[i].name: v for i, v in problems.items() if i < len(final.graph.node)}
    here = {n.name for n in original.graph.node}
    verdicts = []
    for index, facts in enumerate(_top_nodes(read_facts(original))):
        if original is final and index in problems:
            verdicts.append(problems[index])
        elif facts.name in by_name:
            verdicts.append(by_name[facts.name])
        elif facts.name in rewritten:
            rule = rewritten[facts.name]
            verdicts.append(NodeVerdict.of(facts, "rewritten", f"rewritten by rule {rule}", rule=rule))
        else:
            verdicts.append(NodeVerdict.of(facts, "supported", "supported"))
    final_verdicts = [(final.graph.node[i], v) for i, v in problems.items() if i < len(final.graph.node)]
    for node, verdict in final_verdicts:
        if original is not final and node.name not in here:
            rule = rule_of(node)
            verdicts.append(verdict.made_by(rule))
    return tuple(verdicts)


def _top_nodes(facts: GraphFacts) -> list[NodeFacts]:
    first: dict[int, NodeFacts] = {}
    for node in facts.nodes:
        first.setdefault(node.top, node)
    return [first[i] for i in sorted(first)]
