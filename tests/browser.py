"""The browser in which pages are looked at, where one is installed."""

import shutil

import pytest

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
# A browser is no Python package that the tests could install; what is in a page is tested without one too.
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)")
