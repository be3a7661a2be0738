"""The plugins whose kernels can lie in an engine, made from their descriptions."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.embedded import EmbeddedAttribute, EmbeddedPlugin, MakeKernel, OutputDims
from trtconv.core.errors import UnsupportedError
from trtconv.core.requests.build import is_on
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, PluginDescription
from trtconv.plugins.libraries.finding import used_plugins

if TYPE_CHECKING:
    import onnx

PACKAGE = "trtconv.plugins.aot"


def _launch_of(plugin: PluginDescription) -> tuple[OutputDims, MakeKernel]:
    """`output_dims` and `make_kernel` of the module that is called like the plugin's folder."""
    if not plugin.embeddable:
        raise UnsupportedError(
            f"{plugin.op_type} cannot go into an engine: it has no one kernel that computes it",
            hint="leave embed_plugins out, and build with the plugin library",
        )
    try:
        module = importlib.import_module(f"{PACKAGE}.{plugin.folder}")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"the kernel of {plugin.op_type} cannot go into an engine: there is no {PACKAGE}.{plugin.folder}",
            hint="leave embed_plugins out, and build with the plugin library",
        ) from error
    return module.output_dims, module.make_kernel


def embedded_plugin(plugin: PluginDescription) -> EmbeddedPlugin:
    """What the builder needs of a plugin whose kernel goes into the engine. Raises UnsupportedError for one without."""
    output_dims, make_kernel = _launch_of(plugin)
    types = [t.type for t in plugin.inputs]
    return EmbeddedPlugin(
        op_type=plugin.op_type,
        namespace=NAMESPACE,
        version=plugin.version,
        inputs=tuple(t.name for t in plugin.inputs),
        attributes=tuple(EmbeddedAttribute(a.name, a.kind) for a in plugin.attributes),
        output_types=tuple(types.index(t.type) for t in plugin.outputs),
        checked=plugin.checked_attributes,
        check_shapes=plugin.shape,
        output_dims=output_dims,
        kernel=make_kernel,
    )


def embedded_in(model: onnx.ModelProto, options: Mapping[str, Any]) -> tuple[EmbeddedPlugin, ...]:
    """The plugins of the model's main graph, where the build options ask for their kernels in the engine; else none."""
    if not is_on(options.get("embed_plugins", False)):
        return ()
    used = used_plugins(model)
    return tuple(embedded_plugin(p) for p in PLUGINS if p.op_type in used)
