"""Make trtconv/core/targets/tables/*.json from what was measured: tables/support_tables.py [--check]

Sources, all in benchmarks/:
  results/parser_*.json       what a parser said to every operator and node test (tables/parser_support.py)
  results/gpu_zoo.json        what became of each zoo case's engine on TensorRT 8.6, and its operators (speed.gpu_zoo)
  tables/documented.json     operators that a release documents, and what is known of single ones
  tables/constructs.json     ways to use an operator that a target refuses or computes wrongly

Prints how far each table agrees with the parser, test by test; --check writes nothing and fails when a table is not
what this makes of the sources.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = ROOT / "benchmarks"
SUPPORT = ROOT / "trtconv/core/targets/tables"
TABLES = ("8.6", "10", "11", "rtx")
# No parser of TensorRT 11 was run; that of RTX 1.7 has the same importers, and no plugins.
PARSER_OF = {"8.6": "parser_tensorrt_8.6.json", "11": "parser_tensorrt_rtx.json", "rtx": "parser_tensorrt_rtx.json"}
SAME_AS_RTX = "; the parser of TensorRT 11 has the same importers"
EXAMPLES = 2


def read(name: str) -> dict:
    path = HERE / name
    return json.loads(path.read_text()) if path.exists() else {}


def measured_of(table: str) -> dict:
    """What a parser said, or nothing where none of that version was run."""
    return read(f"results/{PARSER_OF[table]}") if table in PARSER_OF else {}


def counts_by_operator(measured: dict, newest: int) -> defaultdict[str, Counter]:
    """For tests of one operator: how many there are, how many the parser takes in one of the two ways."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for test in measured.get("tests", {}).values():
        if len(test["ops"]) == 1 and test["opset"] <= newest:
            accepted = any(test.get(k, {}).get("taken") for k in ("as_is", "fixed"))
            counts[test["ops"][0]]["taken" if accepted else "refused"] += 1
    return counts


def zoo_words() -> dict[str, str]:
    """For each operator: in how many zoo cases its engine was built and equal to the module, and in which not."""
    equal, refused = defaultdict(list), defaultdict(list)
    for case in read("results/gpu_zoo.json").get("cases", []):
        for op in case.get("operators", ()):
            if case["verdict"] == "equal":
                equal[op].append(case["case"])
            elif case["verdict"] == "refused by TensorRT":
                refused[op].append(case["case"])
    words = {}
    for op in {*equal, *refused}:
        text = f"{len(equal[op])} zoo cases built and equal on an H200" if equal[op] else "in no equal zoo case"
        text += f" ({', '.join(sorted(equal[op])[:EXAMPLES])})" if equal[op] else ""
        words[op] = text + (f", refused in {', '.join(sorted(refused[op])[:EXAMPLES])}" if refused[op] else "")
    return words


def operators(table: str, documented: dict, measured: dict, newest: int) -> dict[str, dict]:
    """The entry of every operator, with its evidence."""
    rtx = measured_of("rtx")
    own = documented["operators"].get(table, {})
    listed = documented["documented"].get(table, {})
    counts = counts_by_operator(measured, newest)
    zoo = zoo_words() if table == "8.6" else {}
    entries = {}
    for op in sorted(rtx["importers"]):
        entry = dict(own[op]) if op in own else _entry(op, listed, measured, counts[op]["taken"])
        entry["evidence"] += _node_tests(op, counts, measured)
        if table == "11" and op not in own:
            entry["evidence"] += SAME_AS_RTX
        if op in zoo:
            entry["evidence"] += f"; {zoo[op]}"
        entries[op] = entry
    return entries


def _entry(op: str, listed: dict, measured: dict, accepted: int) -> dict:
    if not listed:
        said = measured["importers"][op]
        return {"supported": said, "evidence": f"supports_operator of the {measured['parser']} parser"}
    if op in listed["listed"]:
        row = {"supported": True, "evidence": listed["source"]}
    elif op in listed["listed_without_support"]:
        row = {"supported": False, "evidence": listed["source"]}
    else:
        row = {"supported": False, "evidence": f"not in the list of {listed['source']}"}
    if measured:
        # The parser of that version was asked: what it takes it has, whatever it says of itself or is said of it.
        said = bool(measured["importers"].get(op)) or accepted > 0
        words = "agrees" if said == row["supported"] else f"says {'yes' if said else 'no'}, which counts"
        words = f"{measured['parser']} {words}"
        row = {"supported": said, "evidence": f"{row['evidence']}; {words}"}
    return row


def _node_tests(op: str, counts: defaultdict[str, Counter], measured: dict) -> str:
    count = counts[op]
    if not count.total():
        return ""
    return f"; {measured['parser']} takes {count['taken']} of {count.total()} node tests of onnx {measured['onnx']}"


def make(table: str) -> dict:
    """The table as plain data."""
    documented = read("tables/documented.json")
    head = documented["tables"][table]
    constructs = [c for c in json.loads((HERE / "tables/constructs.json").read_text()) if table in c["targets"]]
    return {
        "schema": 1,
        "table": f"tensorrt-{table}",
        **head,
        "ops": operators(table, documented, measured_of(table), head["facts"]["max_opset"]),
        "constructs": [{k: v for k, v in c.items() if k != "targets"} for c in constructs],
    }


def text_of(table: dict) -> str:
    """JSON with one operator or construct a line."""
    head = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in table.items() if k not in ("ops", "constructs"))
    ops = ",\n".join(f"  {json.dumps(n)}: {json.dumps(e)}" for n, e in table["ops"].items())
    constructs = ",\n".join(f"  {json.dumps(c)}" for c in table["constructs"])
    return f'{{\n{head},\n "ops": {{\n{ops}\n }},\n "constructs": [\n{constructs}\n ]\n}}\n'


def agreement(table: str) -> tuple[Counter, list[str]]:
    """(table's word, parser's word) counted over the node tests, and the tests that the table takes and it refuses."""
    from benchmarks.tables.parser_support import frozen, node_tests
    from trtconv.check.target.node_facts import read_facts
    from trtconv.check.target.verdicts import judge_by_table
    from trtconv.core.targets import parse_target
    from trtconv.core.targets.table import load_table

    measured = measured_of(table)
    target = parse_target("tensorrt-rtx" if table == "rtx" else f"tensorrt=={table}")
    support = load_table(target)
    counts: Counter = Counter()
    lenient = []
    for name, model, inputs in node_tests():
        test = measured["tests"].get(name)
        if test is None or (table == "8.6" and test["opset"] > support.max_opset):
            continue
        for kind, variant in (("as_is", model), ("fixed", frozen(model, inputs))):
            if kind not in test or variant is None:
                continue
            facts = read_facts(variant)
            good = all(
                judge_by_table(n, facts, target, support).status not in ("refused", "wrong") for n in facts.nodes
            )
            counts["taken" if good else "refused", "taken" if test[kind]["taken"] else "refused"] += 1
            if good and not test[kind]["taken"]:
                lenient.append(f"{name} ({kind}, {', '.join(test['ops'])}): {test[kind]['message'][:110]}")
    return counts, lenient


def main(check: bool) -> int:
    stale = []
    for table in TABLES:
        path, text = SUPPORT / f"tensorrt-{table}.json", text_of(make(table))
        if check:
            stale += [] if path.read_text() == text else [path.name]
        else:
            path.write_text(text)
    for table in () if check else TABLES:
        if not measured_of(table):
            continue
        counts, lenient = agreement(table)
        total = counts.total()
        print(
            f"{table}: table and parser agree on {total - len(lenient) - counts['refused', 'taken']} of {total} "
            f"questions; the table takes {len(lenient)} that the parser refuses, and refuses "
            f"{counts['refused', 'taken']} that it takes"
        )
        for words in lenient:
            print("   ", words)
    print("\n".join(f"{name} is not what the sources give: run benchmarks/tables/support_tables.py" for name in stale))
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
