"""Loading weights without running code that a file carries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.core.text.error_text import first_line

if TYPE_CHECKING:
    import torch
    from torch import nn

SHOWN = 12


def load_weights(module: nn.Module, path: Path) -> None:
    """Put the weights of a safetensors file or a state dict into the module.

    Raises InvalidRequestError for any other file, when a key is missing or extra (all are listed), or
    when a shape differs. A missing key is fine when its tensor is tied to one that is there.
    """
    require_file(path, "weights file")
    state = _read_safetensors(path) if path.suffix == ".safetensors" else _read_state_dict(path)
    module_state = module.state_dict()
    missing = [k for k in module_state if k not in state and not _is_tied(k, module_state, state)]
    extra = [k for k in state if k not in module_state]
    if missing or extra:
        details = [*_list_keys("missing", missing), *_list_keys("extra", extra)]
        stripped = {k.removeprefix("module.") for k in state}
        hint = "name the weights of this module, or change the factory's --arg values"
        if extra and stripped == set(module_state):
            hint = "the keys start with 'module.' (nn.DataParallel): save module.module.state_dict() instead"
        raise InvalidRequestError(
            f"the weights '{path}' do not fit the module: {len(missing)} keys are missing, {len(extra)} are extra",
            hint=hint,
            details=details,
        )
    shapes = [
        f"{k}: file {list(v.shape)}, module {list(module_state[k].shape)}"
        for k, v in state.items()
        if tuple(v.shape) != tuple(module_state[k].shape)
    ]
    if shapes:
        raise InvalidRequestError(
            f"{len(shapes)} tensors of '{path}' have another shape than the module's",
            hint="change the factory's --arg values",
            details=shapes[:SHOWN],
        )
    module.load_state_dict(dict(state), strict=False)


def _list_keys(kind: str, keys: list[str]) -> list[str]:
    tail = [f"... and {len(keys) - SHOWN} more {kind}"] if len(keys) > SHOWN else []
    return [f"{kind}: {k}" for k in keys[:SHOWN]] + tail


def _is_tied(key: str, module_state: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> bool:
    address = module_state[key].data_ptr()
    return address != 0 and any(
        k != key and k in state and v.data_ptr() == address and v.shape == module_state[key].shape
        for k, v in module_state.items()
    )


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, torch.Tensor] = load_file(str(path))
        return tensors
    except (SafetensorError, OSError) as error:
        raise InvalidRequestError(
            f"'{path}' is not a safetensors file: {error}",
            hint="write it with safetensors.torch.save_file, or give a state dict as .pt or .pth",
        ) from error


def _read_state_dict(path: Path) -> Mapping[str, torch.Tensor]:
    import pickle

    import torch

    try:
        loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        with open(path, "rb") as stream:
            beginning = stream.read(2)
        if beginning != b"PK" and not beginning.startswith(pickle.PROTO):
            raise InvalidRequestError(
                f"'{path}' is not a file of weights",
                hint="name one that torch.save or safetensors.torch.save_file wrote from module.state_dict()",
            ) from error
        raise InvalidRequestError(
            f"'{path}' holds more than tensors, and loading it could run code that it carries",
            hint="save module.state_dict() alone, best as safetensors (safetensors.torch.save_file)",
        ) from error
    except MemoryError:
        raise
    # torch's reader raises anything for a file that is not its own: an IndexError for an empty one.
    except Exception as error:
        reason = first_line(error) or type(error).__name__
        raise InvalidRequestError(
            f"'{path}' is not a torch state dict: {reason}", hint="save module.state_dict() again"
        ) from error
    for wrapper in ("state_dict", "model_state_dict"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(wrapper), Mapping):
            loaded = loaded[wrapper]
    if not isinstance(loaded, Mapping) or not all(isinstance(v, torch.Tensor) for v in loaded.values()):
        raise InvalidRequestError(
            f"'{path}' holds no state dict (a mapping of names to tensors)", hint="save module.state_dict()"
        )
    return loaded
