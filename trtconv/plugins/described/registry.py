"""The plugins, in the order in which libraries and docs list them. A test compares this tuple with the folders."""

from __future__ import annotations

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.plugins.described.adaptive_pool import ADAPTIVE_POOL
from trtconv.plugins.described.instance_norm import INSTANCE_NORM
from trtconv.plugins.described.l2norm import L2NORM
from trtconv.plugins.described.reflection_pad import REFLECTION_PAD
from trtconv.plugins.description import PluginDescription

PLUGINS: tuple[PluginDescription, ...] = (L2NORM, INSTANCE_NORM, REFLECTION_PAD, ADAPTIVE_POOL)


def find_plugin(op_type: str) -> PluginDescription:
    """Return the plugin of that op type. Raises InvalidRequestError for an unknown one."""
    for plugin in PLUGINS:
        if plugin.op_type == op_type:
            return plugin
    known = [p.op_type for p in PLUGINS]
    raise InvalidRequestError(
        f"there is no plugin '{op_type}'{did_you_mean(op_type, known)}", hint="one of " + ", ".join(known)
    )
