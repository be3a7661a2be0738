"""Loading plugin libraries with a registry that behaves like TensorRT's: one name, one creator."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from trtconv.backends.tensorrt.builder.configuration import OWN_LIBRARY, leave_out_foreign_tactics
from trtconv.backends.tensorrt.plugin_loading import is_loaded, load_plugins
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.plugins.libraries.library import LIBRARY_NAME

SOURCE = """char const* const kName = "OnePlugin";
int getPluginCreators(void) { return 0; }
int setLoggerFinder(void) { return 0; }
"""


class Registry:
    """Registers the one plugin that every library here has; a second time it does as TensorRT 8.6: None, no word."""

    def __init__(self, messages):
        self.messages, self.libraries, self.broken = messages, [], False

    def load_library(self, path):
        if self.broken:
            self.messages.append("[pluginRegistry] not a plugin library")
            return None
        self.libraries.append(path)
        if len(self.libraries) > 1:
            return None
        return object()

    @property
    def plugin_creator_list(self):
        creator = SimpleNamespace(plugin_namespace="trtconv", name="OnePlugin", plugin_version="1")
        return [creator] if self.libraries else []


class Logger:
    def __init__(self):
        self.lines = []

    @contextlib.contextmanager
    def collect(self):
        start = len(self.lines)
        creator = SimpleNamespace(errors=())
        yield creator
        creator.errors = tuple(self.lines[start:])


@pytest.fixture
def trt():
    logger = Logger()
    registry = Registry(logger.lines)
    return SimpleNamespace(__version__="8.6.0", get_plugin_registry=lambda: registry, logger=logger, registry=registry)


@pytest.fixture
def library(tmp_path):
    source = tmp_path / "one.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libone.so"), str(source)], check=True)
    return tmp_path / "libone.so"


def load(trt, *libraries):
    load_plugins(trt, trt.logger, libraries)


def test_the_same_library_may_come_again(trt, library):
    assert not is_loaded(library)
    load(trt, library)
    assert is_loaded(library)
    load(trt, library, library)


def test_another_library_with_the_same_names(trt, library, tmp_path):
    load(trt, library)
    other = tmp_path / "libother.so"
    shutil.copy(library, other)
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match=r"libother.so' has .* registered already: trtconv::OnePlugin::1"):
            load(trt, other)
        assert not is_loaded(other)


def test_a_library_that_tensorrt_refuses(trt, library):
    trt.registry.broken = True
    with pytest.raises(TrtconvError, match=r"does not load the plugin library") as caught:
        load(trt, library)
    assert "not a plugin library" in caught.value.details[0]


@pytest.mark.parametrize(
    ("names", "left"), [(["libtrtconv_plugins.so"], 0b11000), (["libtrtconv_plugins.so", "libmine.so"], 0b11111)]
)
def test_our_plugins_need_no_cublas(names, left):
    """A user's library may take the handles that TensorRT 8.6 makes for plugins."""
    sources = {"CUBLAS": 0, "CUBLAS_LT": 1, "CUDNN": 2, "EDGE_MASK_CONVOLUTIONS": 3, "JIT_CONVOLUTIONS": 4}
    trt = SimpleNamespace(TacticSource=SimpleNamespace(__members__=sources))
    chosen = [0b11111]
    config = SimpleNamespace(get_tactic_sources=lambda: chosen[-1], set_tactic_sources=chosen.append)
    leave_out_foreign_tactics(trt, config, SimpleNamespace(plugins=tuple(Path("/x") / n for n in names)))
    assert chosen[-1] == left
    assert OWN_LIBRARY == LIBRARY_NAME
