"""The reference page of the plugins, made from their descriptions: `python -m trtconv.plugins.docs_page FILE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trtconv.core.artifacts import write_text
from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, PluginAttribute, PluginDescription
from trtconv.plugins.measured import PluginTiming, load_measurements


def page_text(plugins: tuple[PluginDescription, ...] = PLUGINS) -> str:
    """The page in Markdown."""
    measurements = load_measurements()
    return "\n".join(
        [_INTRODUCTION, *(_section(p, [m for m in measurements if m.op_type == p.op_type]) for p in plugins)]
    )


_INTRODUCTION = f"""# Plugins

<!-- Made by `python -m trtconv.plugins.docs_page`: edit the descriptions in trtconv/plugins instead. -->

Every plugin is a node in the ONNX domain `{NAMESPACE}` with the string attributes `plugin_version` and
`plugin_namespace`, by which TensorRT finds its creator. A model for ONNX Runtime carries the node's function body as
well. Types: `T` is the type of the data, `S` that of per-channel parameters, which may differ from it. bfloat16 needs
TensorRT 10 or later.

## When a rewrite uses them

`trtconv rewrite --plugins` takes

- `never` (the default): native operators only.
- names, such as `TrtconvL2Norm,TrtconvReflectionPad`: wherever the plugin's rule matches.
- `auto`: where it pays. A plugin is used at a node when the target's TensorRT can load it (`trtconv plugins build` made
  a library for that major version here, or `--plugin LIB` or `[build] plugins` names one that has it) and when the
  measurement nearest in bytes moved at opt, of the same plugin, element type and TensorRT major version, has it faster
  by 5 % or more. Measurements over 8 times smaller or larger say nothing. `--explain` prints for every node which
  measurement decided, or what was missing. `auto,NAME` uses NAME everywhere and lets measurements decide the rest.

A plugin of your own: [how to write one](../how-to/write-a-plugin.md).
"""


def _section(plugin: PluginDescription, measurements: Sequence[PluginTiming]) -> str:
    lines = [f"## {plugin.op_type}", "", plugin.summary, ""]
    lines += [f"Version `{plugin.version}`, sources in `plugins_src/{plugin.folder}/`.", ""]
    lines += ["| tensor | type | shape |", "| --- | --- | --- |"]
    lines += [f"| input `{t.name}` | {t.type} | {t.doc} |" for t in plugin.inputs]
    lines += [f"| output `{t.name}` | {t.type} | {t.doc} |" for t in plugin.outputs]
    lines += ["", ", ".join(f"{name}: {', '.join(allowed)}" for name, allowed in plugin.types) + ".", ""]
    lines += ["| attribute | type | default | values | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [_attribute_row(a) for a in plugin.attributes]
    lines += ["", *(f"- {note}" for note in plugin.notes), ""]
    lines += _measured(measurements)
    return "\n".join(lines)


def _measured(measurements: Sequence[PluginTiming]) -> list[str]:
    """What `--plugins auto` decides by."""
    if not measurements:
        return ["It was not measured beside native layers: `--plugins auto` does not use it.", ""]
    lines = ["| measured on | input | type | native ms | plugin ms | native / plugin |", "| --- " * 6 + "|"]
    for m in measurements:
        machine = f"{m.gpu}, TensorRT {m.tensorrt}, {m.date}"
        alone = " (kernel alone)" if m.plugin_form == "kernel" else ""
        times = f"{m.native_ms:.4f} | {m.plugin_ms:.4f}{alone} | {m.ratio:.2f}"
        lines.append(f"| {machine} | {list(m.shape)} | {m.dtype} | {times} |")
    return [*lines, ""]


def _attribute_row(a: PluginAttribute) -> str:
    default = ", ".join(str(v) for v in a.default) if isinstance(a.default, tuple) else f"{a.default:g}"
    return f"| `{a.name}` | {a.type_text} | {default} | {a.range_text} | {a.doc} |"


def main(arguments: list[str]) -> int:
    """Write the page to the file that the only argument names."""
    if len(arguments) != 1:
        raise InvalidRequestError("usage: python -m trtconv.plugins.docs_page FILE")
    write_text(Path(arguments[0]), page_text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
