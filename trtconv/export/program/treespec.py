"""The structure of a program's inputs and outputs, a JSON text inside the JSON.

torch imports modules by name for enums and for defaultdict (torch/utils/_pytree.py, `enum_object_hook` and
`_defaultdict_deserialize`) and writes the keywords into Python source, so that only plain containers are taken.
"""

from __future__ import annotations

import re
from typing import Any

from trtconv.core.text.json_text import parse_json

_CONTAINERS = {
    "builtins.tuple",
    "builtins.list",
    "builtins.dict",
    "collections.OrderedDict",
    "collections.namedtuple",
    "collections.deque",
    "torch.Size",
    "torch.fx.immutable_collections.immutable_list",
    "torch.fx.immutable_collections.immutable_dict",
}
_KEY = re.compile(r"[\w.\-: /@]{1,256}")
MOST_LEVELS = 60


def require_treespec(text: str) -> None:
    """Raise ValueError unless `text` describes nested tuples, lists and dicts."""
    try:
        version, tree = parse_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("is not a tree of containers") from error
    if version != 1:
        raise ValueError("is a tree of containers in another version")
    _require_tree(tree, 0)


def _require_tree(tree: Any, level: int) -> None:
    if level > MOST_LEVELS or not isinstance(tree, dict) or set(tree) != {"type", "context", "children_spec"}:
        raise ValueError("is not a tree of containers")
    kind, context, children = tree["type"], tree["context"], tree["children_spec"]
    if not isinstance(children, list):
        raise ValueError("is not a tree of containers")
    if kind is None:
        if context is not None or children:
            raise ValueError("is not a tree of containers")
        return
    if kind not in _CONTAINERS or not isinstance(context, str):
        raise ValueError(f"holds a container of type {str(kind)[:80]!r}")
    _require_context(context)
    for child in children:
        _require_tree(child, level + 1)


def _require_context(text: str) -> None:
    """A dict's keys, a deque's length, a namedtuple's registered name; no JSON object, which could be an enum."""
    try:
        context = parse_json(text)
    except (ValueError, RecursionError) as error:
        if _KEY.fullmatch(text):
            return
        raise ValueError("holds a container that cannot be read") from error
    for key in context if isinstance(context, list) else [context]:
        if not (key is None or type(key) in (int, bool) or (isinstance(key, str) and _KEY.fullmatch(key))):
            raise ValueError("holds a container with keys that are neither names nor integers")
