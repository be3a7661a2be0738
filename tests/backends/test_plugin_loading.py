"""Loading plugin libraries with a registry that behaves like TensorRT's: one name, one creator."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from trtconv.backends.plugin_loading import is_loaded, load_plugins
from trtconv.core.errors import InvalidRequestError, TrtconvError

SOURCE = "int getPluginCreators(void) { return 0; }\nint setLoggerFinder(void) { return 0; }\n"


class Registry:
    """Registers the one plugin that every library here has; a second time it says what TensorRT 8.6 says."""

    def __init__(self, messages):
        self.messages, self.libraries, self.broken = messages, [], False

    def load_library(self, path):
        if self.broken:
            self.messages.append("[pluginRegistry] not a plugin library")
            return None
        self.libraries.append(path)
        if len(self.libraries) > 1:
            self.messages.append("Plugin creator already registered - trtconv::One version 1")
            return None
        return object()


class Logger:
    def __init__(self):
        self.lines = []

    @contextlib.contextmanager
    def collect(self):
        start = len(self.lines)
        found = SimpleNamespace(errors=())
        yield found
        found.errors = tuple(self.lines[start:])


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
    with_errors = trt.logger
    load_plugins(trt, with_errors, libraries)


def test_the_same_library_may_come_again(trt, library):
    assert not is_loaded(library)
    load(trt, library)
    assert is_loaded(library)
    load(trt, library, library)


def test_another_library_with_the_same_names(trt, library, tmp_path):
    load(trt, library)
    other = tmp_path / "libother.so"
    shutil.copy(library, other)
    with pytest.raises(InvalidRequestError, match=r"libother.so' has plugins whose names another library") as caught:
        load(trt, other)
    assert "already registered - trtconv::One" in caught.value.details[0]


def test_a_library_that_tensorrt_refuses(trt, library):
    trt.registry.broken = True
    with pytest.raises(TrtconvError, match=r"does not load the plugin library") as caught:
        load(trt, library)
    assert "not a plugin library" in caught.value.details[0]
