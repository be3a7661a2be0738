"""What holds for all tests: no cache of the user's, no module of a test that is over, and some cases of dear tests."""

import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


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
    """Forget the files that a test imported from its folder: whatever looks into the user's modules looks into each.

    And those of the examples, one of which has the name of a package here.
    """
    before = set(sys.modules)
    yield
    folders = f"{tmp_path_factory.getbasetemp()}{os.sep}", f"{EXAMPLES}{os.sep}"
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folders):
            del sys.modules[name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow all but some cases of each test marked `sampled(count)`, spread over its list."""
    cases = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and item.get_closest_marker("slow") is None:
            cases[item.path, item.originalname, mark.args[0]].append(item)
    for (*_, count), listed in cases.items():
        sampled = {round(i * (len(listed) - 1) / max(count - 1, 1)) for i in range(count)}
        for index, item in enumerate(listed):
            if index not in sampled:
                item.add_marker(pytest.mark.slow)
