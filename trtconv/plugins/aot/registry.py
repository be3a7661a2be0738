"""The plugins whose kernels can lie in an engine, made from their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.embedded import EmbeddedAttribute, EmbeddedPlugin, MakeKernel, OutputDims
from trtconv.plugins.aot import adaptive_pool, instance_norm, l2norm, reflection_pad
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, PluginDescription
from trtconv.plugins.libraries.finding import used_plugins

if TYPE_CHECKING:
    import onnx

_LAUNCHES: dict[str, tuple[OutputDims, MakeKernel]] = {
    "l2norm": (l2norm.output_dims, l2norm.make_kernel),
    "instance_norm": (instance_norm.output_dims, instance_norm.make_kernel),
    "reflection_pad": (reflection_pad.output_dims, reflection_pad.make_kernel),
    "adaptive_pool": (adaptive_pool.output_dims, adaptive_pool.make_kernel),
}


def embedded(plugin: PluginDescription) -> EmbeddedPlugin:
    """What the builder needs of a plugin whose kernel goes into the engine."""
    output_dims, make_kernel = _LAUNCHES[plugin.folder]
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
    if str(options.get("embed_plugins", "")).lower() not in ("true", "1", "yes", "on"):
        return ()
    used = used_plugins(model)
    return tuple(embedded(p) for p in PLUGINS if p.op_type in used)
