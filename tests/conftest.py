"""What holds for all tests: no cache of the user's, and no module of a test that is over."""

import os
import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_user_cache():
    """No test reads or fills the engine cache of the user who runs the tests."""
    before = os.environ.get("TRTCONV_CACHE")
    os.environ["TRTCONV_CACHE"] = "off"
    yield
    if before is None:
        del os.environ["TRTCONV_CACHE"]
    else:
        os.environ["TRTCONV_CACHE"] = before


@pytest.fixture(autouse=True)
def _no_modules_of_other_tests(tmp_path_factory):
    """Forget the files that a test imported from its folder: whatever looks into the user's modules looks into each."""
    before = set(sys.modules)
    yield
    folder = f"{tmp_path_factory.getbasetemp()}{os.sep}"
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]
