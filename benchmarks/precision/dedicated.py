"""The same quantised graph with a Q/DQ pair for each reader of a value, as some quantisers write it."""

from __future__ import annotations

from pathlib import Path

import onnx


def dedicate(path: Path, output: Path) -> int:
    """Write the graph with its shared pairs copied; returns how many pairs were added."""
    model = onnx.load(str(path))
    graph = model.graph
    makers = {o: n for n in graph.node for o in n.output}
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in graph.node:
        for index, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, index))
    added: dict[int, list[onnx.NodeProto]] = {}
    for position, node in enumerate(graph.node):
        if node.op_type != "DequantizeLinear":
            continue
        for number, (reader, index) in enumerate(readers.get(node.output[0], [])[1:]):
            pair = []
            for original in (makers[node.input[0]], node):
                copy = onnx.NodeProto()
                copy.CopyFrom(original)
                copy.name, copy.output[0] = (
                    f"{original.name or original.output[0]}_{number}",
                    f"{original.output[0]}_{number}",
                )
                pair.append(copy)
            pair[1].input[0] = pair[0].output[0]
            reader.input[index] = pair[1].output[0]
            added.setdefault(position, []).extend(pair)
    nodes = [n for i, node in enumerate(graph.node) for n in (node, *added.get(i, []))]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, str(output))
    return sum(len(pair) for pair in added.values()) // 2
