"""Plugins of the user's own: a Python file that defines `PLUGINS`, a tuple of PluginDescription."""

from __future__ import annotations

import re
from pathlib import Path

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.python_file import load_python
from trtconv.plugins.description import FLOAT_TYPES, PluginDescription

FILE_NAME = "plugin.py"
OWN_PREFIX = "Trtconv"
"""Op types that begin so are trtconv's, now or later."""

MAX_TENSORS = 8
ATTRIBUTE_BYTES = 64
"""What the adapters in plugins_src hold of one plugin."""

_GUIDE = "see `trtconv help write-a-plugin`"


def load_plugins(file: Path) -> tuple[PluginDescription, ...]:
    """The descriptions of a file. Raises InvalidRequestError when it fails, defines none, or one cannot be built."""
    plugins = getattr(load_python(file, "plugin description"), "PLUGINS", None)
    if not isinstance(plugins, (tuple, list)) or not plugins:
        raise InvalidRequestError(
            f"'{file}' describes no plugins", hint=f"end it with PLUGINS = (PluginDescription(...),); {_GUIDE}"
        )
    for plugin in plugins:
        if not isinstance(plugin, PluginDescription):
            raise InvalidRequestError(
                f"'{file}': PLUGINS holds {plugin!r}, which is not a PluginDescription", hint=_GUIDE
            )
        require_buildable(plugin)
    for key in ("op_type", "folder"):
        names = [getattr(p, key) for p in plugins]
        double = next((n for n in names if names.count(n) > 1), None)
        if double:
            raise InvalidRequestError(f"'{file}' describes two plugins with {key} '{double}'", hint="rename one")
    return tuple(plugins)


def require_buildable(plugin: PluginDescription) -> None:
    """Raise InvalidRequestError for a description of which no header, node or function could be made."""
    problem = _name_problem(plugin) or _tensor_problem(plugin) or _attribute_problem(plugin)
    if problem:
        raise InvalidRequestError(f"the plugin {plugin.op_type or '(no op_type)'}: {problem}", hint=_GUIDE)
    plugin.checked_attributes({})


def _name_problem(plugin: PluginDescription) -> str:
    if not re.fullmatch(r"[A-Z]\w*", plugin.op_type):
        return "op_type has to be a name such as MySampler"
    if plugin.op_type.startswith(OWN_PREFIX):
        return f"names that begin with {OWN_PREFIX} are trtconv's own"
    if not re.fullmatch(r"[a-z]\w*", plugin.folder):
        return f"folder '{plugin.folder}' has to be a C++ namespace such as my_sampler"
    from onnx import defs

    if any(schema.name == plugin.op_type for schema in defs.get_all_schemas()):
        return "an ONNX operator has this name, and TensorRT's importers look at the name alone"
    return ""


def _tensor_problem(plugin: PluginDescription) -> str:
    tensors = (*plugin.inputs, *plugin.outputs)
    types = dict(plugin.types)
    inputs = {t.type for t in plugin.inputs}
    if not plugin.inputs or not plugin.outputs or max(len(plugin.inputs), len(plugin.outputs)) > MAX_TENSORS:
        return f"it needs 1 to {MAX_TENSORS} inputs and outputs"
    for tensor in tensors:
        if tensor.type not in types:
            return f"'{tensor.name}' has the type variable {tensor.type}, which `types` does not define"
    for output in plugin.outputs:
        if output.type not in inputs:
            return f"no input has the type {output.type} of the output '{output.name}'"
    for name, allowed in types.items():
        if not allowed or set(allowed) - set(FLOAT_TYPES):
            return f"type {name} may be of {', '.join(FLOAT_TYPES)}"
    return ""


def _attribute_problem(plugin: PluginDescription) -> str:
    size = 4 * sum(a.length for a in plugin.attributes)
    if size > ATTRIBUTE_BYTES:
        return f"its attributes take {size} bytes, {ATTRIBUTE_BYTES} are possible; pass long lists as an input"
    names = [a.name for a in plugin.attributes]
    for name in names:
        if not re.fullmatch(r"[a-z]\w*", name) or name in ("plugin_version", "plugin_namespace"):
            return f"'{name}' cannot be the name of an attribute"
    return "two attributes have the same name" if len(set(names)) < len(names) else ""
