"""The plugins, made from the files of this folder: adding one is adding its file (and its folder in plugins_src)."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.plugins.description import PluginDescription

PACKAGE = "trtconv.plugins.described"


def discover_plugins() -> tuple[PluginDescription, ...]:
    """The `PluginDescription` of every module of this package, by folder name."""
    package = importlib.import_module(PACKAGE)
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != Path(__file__).stem]
    modules = [importlib.import_module(f"{PACKAGE}.{name}") for name in names]
    plugins = {v.folder: v for m in modules for v in vars(m).values() if isinstance(v, PluginDescription)}
    return tuple(plugins[folder] for folder in sorted(plugins))


PLUGINS: tuple[PluginDescription, ...] = discover_plugins()


def find_plugin(op_type: str) -> PluginDescription:
    """Return the plugin of that op type. Raises InvalidRequestError for an unknown one."""
    for plugin in PLUGINS:
        if plugin.op_type == op_type:
            return plugin
    op_types = [p.op_type for p in PLUGINS]
    raise InvalidRequestError(
        f"there is no plugin '{op_type}'{did_you_mean(op_type, op_types)}", hint="one of " + ", ".join(op_types)
    )
