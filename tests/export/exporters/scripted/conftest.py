"""What the tests of scripted modules share."""

import importlib.util

import pytest


@pytest.fixture
def load():
    """The namespace of a module's file, under a name of its own."""

    def run(path):
        spec = importlib.util.spec_from_file_location("net_of_numbers", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return run
