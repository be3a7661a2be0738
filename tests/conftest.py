"""No test reads or fills the engine cache of the user who runs the tests."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_user_cache():
    before = os.environ.get("TRTCONV_CACHE")
    os.environ["TRTCONV_CACHE"] = "off"
    yield
    if before is None:
        del os.environ["TRTCONV_CACHE"]
    else:
        os.environ["TRTCONV_CACHE"] = before
