"""From `file.py:factory`, `package.module:factory`, `program.pt2` or a live module to an nn.Module with its weights."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, TrtconvError, causes, did_you_mean
from trtconv.core.files.nearby import file_hint, import_hint
from trtconv.core.requests import ModuleSource
from trtconv.core.text.error_text import first_line
from trtconv.core.text.listing import list_names
from trtconv.export.lasting.process_settings import settings_put_back
from trtconv.export.module.creation import noted_creations
from trtconv.export.module.user_code import blame, exited, parse_file

if TYPE_CHECKING:
    from torch import nn


def load_module(source: ModuleSource) -> nn.Module:
    """Return the module on the CPU with its weights, in the mode (train or eval) in which the factory left it.

    The factory runs with torch seeded by `source.seed`, so that random weights are the same every time. A live module
    is returned itself, moved to the CPU; `trtconv.export.live.borrowed` puts it back. Raises
    InvalidRequestError for a file, factory, argument or key that is not there, TrtconvError (with the user's line)
    when the user's code raises, MissingDependencyError without torch.
    """
    require_torch()
    import torch
    from torch import nn

    from trtconv.export.lasting.lazy_parameters import require_weights
    from trtconv.export.module.exported_program import load_program
    from trtconv.export.module.scripted_module import callable_module
    from trtconv.export.module.weights import load_weights

    torch.manual_seed(source.seed)
    if source.live is not None:
        module = source.live.module
        if isinstance(module, type) and issubclass(module, nn.Module):
            name = module.__name__
            raise InvalidRequestError(f"{name} is a class of modules", hint=f"pass one of them: {name}(...)")
        if not isinstance(module, nn.Module):
            raise InvalidRequestError(
                f"{_kind(module)} is not an nn.Module",
                hint="pass a module, or path/to/file.py:factory; of an ExportedProgram, its .pt2 file",
            )
    elif source.spec.endswith(".pt2"):
        module = load_program(source.base / source.spec)
    else:
        with _searched(source), settings_put_back():
            factory = load_function(source.spec, source.base, "factory")
            instance = _call_factory(factory, dict(source.args), source)
        if not isinstance(instance, nn.Module):
            raise InvalidRequestError(
                f"'{source.spec}' returned {_kind(instance)}, not an nn.Module",
                hint="return the module from the factory",
            )
        module = instance
    if source.weights is not None:
        load_weights(module, source.base / source.weights)
    _require_values(module, source.spec)
    if source.live is not None:
        require_weights(module, source.spec)
    return callable_module(module.cpu())


def _require_values(module: nn.Module, spec: str) -> None:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    empty = [name for name, tensor in tensors if tensor.is_meta]
    if empty:
        raise InvalidRequestError(
            f"'{spec}' has weights without values: {list_names(empty, 1)} lie on torch's meta device",
            hint="make the module on the CPU, or call to_empty() and load its weights in the factory",
        )


def require_torch() -> None:
    """Raise MissingDependencyError when torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise MissingDependencyError("exporting a module needs torch", hint="pip install torch onnxscript")


def require_named(spec: str, base: Path, what: str) -> None:
    """Raise InvalidRequestError for a spec that is none, or whose file is not there; nothing is imported for it."""
    module_path, colon, name = spec.rpartition(":")
    if not colon or not module_path or not name:
        named = _definitions(base / spec) if spec.endswith(".py") else []
        if named:
            raise InvalidRequestError(
                f"'{spec}' is a file, and no {what} of it is named",
                hint=f"write {spec}:{named[0]}" + (f"; it also has: {', '.join(named[1:12])}" if named[1:] else ""),
            )
        readable = f"path/to/file.py:{what}, package.module:{what} or program.pt2"
        if (base / spec).is_file():
            raise InvalidRequestError(
                f"'{spec}' is a file, and neither Python nor a program.pt2",
                hint=f"write {readable}; an ONNX file is taken by the name model.onnx, in onnx's binary form",
            )
        raise InvalidRequestError(f"cannot read '{spec}'", hint=f"write {readable}")
    if module_path.endswith(".py"):
        _require_there(spec, base)
        require_file(base / module_path, "module file")


def load_function(spec: str, base: Path, what: str) -> Callable[..., Any]:
    """Import the object that `file.py:name` or `package.module:name` names. Errors are those of `load_module`."""
    require_named(spec, base, what)
    module_path, _, name = spec.rpartition(":")
    if module_path.endswith(".py"):
        namespace = _import_file(base / module_path, base)
    else:
        namespace = _import_name(module_path, base)
    target: Any = namespace
    for part in name.split("."):
        if not hasattr(target, part):
            callables = [n for n, v in vars(target).items() if callable(v) and not n.startswith("_")]
            here = [n for n in callables if getattr(vars(target)[n], "__module__", None) == namespace.__name__]
            raise InvalidRequestError(
                f"'{module_path}' has no {what} '{part}'{did_you_mean(part, callables)}",
                hint="it has: " + ", ".join(sorted(here or callables)[:12]) if callables else f"define '{part}' in it",
            )
        target = getattr(target, part)
    if not callable(target):
        raise InvalidRequestError(f"'{spec}' is {_kind(target)}, not a function", hint=f"name a {what}")
    return target  # type: ignore[no-any-return]


def _definitions(path: Path) -> list[str]:
    """Names of the file's own classes and functions, classes of modules first; none where it cannot be read."""
    tree = parse_file(str(path))
    body = tree.body if tree is not None else []
    defined = [n for n in body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and not n.name.startswith("_")]
    defined.sort(key=lambda n: not (isinstance(n, ast.ClassDef) and any("Module" in ast.unparse(b) for b in n.bases)))
    return [n.name for n in defined]


def _require_there(spec: str, base: Path) -> None:
    """Raise InvalidRequestError for a file that is not there, with the path of one close by that ends alike."""
    file = spec.rpartition(":")[0]
    hint = "" if (base / file).exists() else file_hint(spec, base)
    if hint:
        raise InvalidRequestError(f"there is no file '{file}' in '{base.resolve()}'", hint=hint)


def _import_file(path: Path, base: Path) -> ModuleType:
    require_file(path, "module file")
    resolved = path.resolve()
    package = _package_of(resolved)
    if package is not None:
        return _import_in_package(path, resolved, *package, base)
    # The plain stem reads best in messages; a module of that name that is already there must not be replaced.
    loaded = sys.modules.get(path.stem)
    same = loaded is not None and getattr(loaded, "__file__", None) == str(resolved)
    name = path.stem if loaded is None or same else f"{path.stem}_{zlib.crc32(str(resolved).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise InvalidRequestError(f"'{path}' cannot be imported as Python", hint="name a .py file")
    namespace = importlib.util.module_from_spec(spec)
    sys.modules[name] = namespace
    with _importable(resolved.parent), _user_code(f"importing '{path}'", base):
        spec.loader.exec_module(namespace)
    return namespace


def _package_of(file: Path) -> tuple[Path, str] | None:
    """The folder above the outermost package of a file, and the file's dotted name; None outside of packages.

    A package whose name another one of this process already has cannot be imported beside it.
    """
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if len(names) == 1 or file.stem == "__init__" or not all(n.isidentifier() for n in names):
        return None
    loaded_file = getattr(sys.modules.get(names[0]), "__file__", None)
    ours = folder / names[0] / "__init__.py"
    if names[0] in sys.modules and (loaded_file is None or Path(loaded_file).resolve() != ours):
        return None
    return folder, ".".join(names)


def _import_in_package(path: Path, resolved: Path, root: Path, name: str, base: Path) -> ModuleType:
    """A file inside of a package, so that its relative imports work."""
    with _importable(root), _user_code(f"importing '{path}'", base):
        importlib.import_module(name.rpartition(".")[0])
        spec = importlib.util.spec_from_file_location(name, resolved)
        assert spec is not None
        assert spec.loader is not None
        namespace = importlib.util.module_from_spec(spec)
        sys.modules[name] = namespace
        spec.loader.exec_module(namespace)
    return namespace


def _import_name(name: str, base: Path) -> ModuleType:
    with _importable(base.resolve()):
        try:
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(name=name)
        except (ModuleNotFoundError, ValueError) as error:
            raise InvalidRequestError(
                f"there is no Python module '{name}'",
                hint=f"{import_hint(name, base)}, or write path/to/file.py:factory",
            ) from error
        with _user_code(f"importing '{name}'", base):
            return importlib.import_module(name)


def _call_factory(factory: Callable[..., Any], args: dict[str, Any], source: ModuleSource) -> Any:
    import torch
    from torch import nn

    if isinstance(factory, nn.Module):
        return factory
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        parameters = None
    if parameters is not None:
        _check_arguments(parameters, args, source.spec)
    folder = (source.base / source.spec.rpartition(":")[0]).resolve().parent
    with (
        _importable(folder),
        _user_code(f"the factory '{source.spec}'", source.base),
        torch.no_grad(),
        noted_creations(),
    ):
        return factory(**args)


def _check_arguments(parameters: Any, args: dict[str, Any], spec: str) -> None:
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    named = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for name in args:
        if name not in named and not open_ended:
            raise InvalidRequestError(
                f"the factory '{spec}' has no parameter '{name}'{did_you_mean(name, named)}",
                hint="its parameters are: " + (", ".join(named) or "none"),
            )
    for name, value in args.items():
        if isinstance(value, str) and name in named and isinstance(named[name].default, bool):
            # Any text is true.
            raise InvalidRequestError(
                f"'{name}' of the factory '{spec}' is true or false, not '{value}'", hint=f"write --arg {name}=true"
            )
    missing = [n for n, p in named.items() if p.default is p.empty and n not in args]
    if missing:
        raise InvalidRequestError(
            f"the factory '{spec}' needs a value for '{missing[0]}'", hint=f"add --arg {missing[0]}=VALUE"
        )


@contextmanager
def _searched(source: ModuleSource) -> Iterator[None]:
    """The folders of `--path` come before those that Python looks into. Raises InvalidRequestError for no folder."""
    with ExitStack() as stack:
        for folder in reversed(source.paths):
            if not (source.base / folder).is_dir():
                raise InvalidRequestError(f"there is no folder '{folder}' to import from", hint="correct --path")
            stack.enter_context(_importable((source.base / folder).resolve()))
        yield


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    # As Python does for a script: modules beside the file can be imported.
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


@contextmanager
def _user_code(what: str, base: Path) -> Iterator[None]:
    try:
        yield
    except (TrtconvError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        raise exited(error, base) from error
    except BaseException as error:
        # A package that imports lazily names the true cause as the one that its error was raised from.
        chain = tuple(causes(error, explicit=True))
        missing = next((e.name for e in chain if isinstance(e, ModuleNotFoundError) and e.name), None)
        if missing:
            raise MissingDependencyError(
                f"{what} needs the Python module '{missing}'",
                hint=import_hint(missing, base),
                where=blame(error, base),
            ) from error
        raise TrtconvError(
            f"{what} raised {', caused by '.join(_raised(e) for e in chain)}",
            hint="correct the line, or show the whole traceback with --debug",
            where=blame(error, base),
        ) from error


def _raised(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
