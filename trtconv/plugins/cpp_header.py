"""The C++ header with each plugin's attributes, fields and signature. CMake runs `python -m trtconv.plugins.cpp_header`."""

from __future__ import annotations

import sys
from pathlib import Path

from trtconv.core.artifacts import write_text
from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.description import NAMESPACE, Attribute, PluginDescription
from trtconv.plugins.registry import PLUGINS

FILE_NAME = "trtconv_descriptions.h"

_KINDS = {"int": "kInt", "float": "kFloat", "ints": "kInts"}
_ELEMENTS = ("float32", "float16", "bfloat16")


def header_text(plugins: tuple[PluginDescription, ...] = PLUGINS) -> str:
    """The header for these plugins: per plugin a struct Attributes, its field table and its signature."""
    parts = [_PROLOGUE, *(_plugin_text(p) for p in plugins), _EPILOGUE]
    return "\n".join(parts)


def _plugin_text(plugin: PluginDescription) -> str:
    members = "\n".join(f"    {_member(a)}" for a in plugin.attributes)
    fields = "\n".join(f"    {_field(a)}," for a in plugin.attributes)
    variables = [name for name, _ in plugin.types]
    slots = ", ".join(str(variables.index(t.type)) for t in (*plugin.inputs, *plugin.outputs))
    masks = ", ".join(str(sum(1 << _ELEMENTS.index(t) for t in allowed)) for _, allowed in plugin.types)
    return f"""
namespace {plugin.folder}
{{
// {plugin.summary}
struct Attributes
{{
{members}
}};

inline constexpr AttributeField kFields[] = {{
{fields}
}};

inline constexpr int32_t kSlots[] = {{{slots}}};
inline constexpr uint32_t kTypeMasks[] = {{{masks}}};

inline constexpr Signature kSignature{{"{plugin.op_type}", "{plugin.version}", "{NAMESPACE}", kFields,
    {len(plugin.attributes)}, sizeof(Attributes), {len(plugin.inputs)}, {len(plugin.outputs)}, kSlots, kTypeMasks}};
}} // namespace {plugin.folder}"""


def _member(attribute: Attribute) -> str:
    if isinstance(attribute.default, tuple):
        values = ", ".join(str(v) for v in attribute.default)
        return f"int32_t {attribute.name}[{attribute.length}]{{{values}}};"
    if attribute.kind == "float":
        return f"float {attribute.name}{{{float(attribute.default)!r}F}};"
    return f"int32_t {attribute.name}{{{attribute.default}}};"


def _field(attribute: Attribute) -> str:
    low = "-kUnbounded" if attribute.low is None else repr(float(attribute.low))
    high = "kUnbounded" if attribute.high is None else repr(float(attribute.high))
    place = f"offsetof(Attributes, {attribute.name})"
    kind = f"AttributeKind::{_KINDS[attribute.kind]}"
    return f'{{"{attribute.name}", {kind}, {attribute.length}, {place}, {low}, {high}}}'


_PROLOGUE = """// Generated from trtconv/plugins by `python -m trtconv.plugins.cpp_header`. Edit the descriptions, not this file.
#pragma once

#include "common/signature.h"

#include <cstddef>
#include <cstdint>

namespace trtconv
{"""

_EPILOGUE = """
} // namespace trtconv
"""


def main(arguments: list[str]) -> int:
    """Write the header into the folder that the only argument names."""
    if len(arguments) != 1:
        raise InvalidRequestError("usage: python -m trtconv.plugins.cpp_header FOLDER")
    write_text(Path(arguments[0]) / FILE_NAME, header_text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
