"""Run by test_aot_bindings.py under TensorRT's real Python bindings: a JSON line for a request, one back.

The stand-in for libnvinfer asks the plugins through TensorRT's C++ interfaces; see aot_host.cpp.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

from trtconv.backends.tensorrt.builder.embedded_plugins import embedded_plugins
from trtconv.core.embedded import KernelTarget
from trtconv.core.errors import TrtconvError
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import PLUGINS


def main() -> None:
    import tensorrt as trt

    trt.Logger(trt.Logger.ERROR)
    host = ctypes.CDLL(sys.argv[1])
    host.aot_ask.restype = ctypes.c_char_p
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(serve(trt, host, request)), flush=True)


def serve(trt: Any, host: Any, request: dict[str, Any]) -> dict[str, Any]:
    plugins = [embedded_plugin(p) for p in PLUGINS if p.embeddable]
    target = KernelTarget(request.get("compute_capability", "9.0"), 132)
    try:
        with embedded_plugins(trt, plugins, target, request.get("driver", "")) as embedding:
            ptx = ctypes.c_char_p()
            text = host.aot_ask(request["ask"].encode(), ctypes.byref(ptx)).decode()
            if text.startswith("failed"):
                raise TrtconvError(text)  # as the backend does when TensorRT gives no engine
            registry = trt.get_plugin_registry()
            creators = [
                [c.name, c.plugin_version, [[f.name, str(f.type)] for f in c.field_names]]
                for c in registry.all_creators
                if c.plugin_namespace == "trtconv"
            ]
            kernel = (ptx.value or b"").decode()
            return {"text": text, "ptx": kernel, "facts": embedding.facts(), "creators": creators}
    except TrtconvError as error:
        return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


if __name__ == "__main__":
    main()
