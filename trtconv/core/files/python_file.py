"""A Python file that the user names: rules, plugin descriptions. It runs once; nothing else is searched."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError


def load_python(file: Path, what: str) -> ModuleType:
    """Run the file as a module and return it. Raises InvalidRequestError that names the file and what went wrong."""
    require_file(file, what)
    spec = importlib.util.spec_from_file_location(f"trtconv_user_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InvalidRequestError(f"'{file}' is not a Python file", hint="name a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidRequestError(
            f"the {what} '{file}' fails: {type(error).__name__}: {error}", hint="run it with Python to see where"
        ) from error
    return module
