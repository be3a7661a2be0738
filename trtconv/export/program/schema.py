"""The JSON of an exported program, checked field by field against torch's own schema.

Each text has a rule that says what it may be; a field without one is refused, so that a field that a later torch adds
is not read unseen. Names matter as much as expressions: torch writes the names of nodes, arguments and weights into
Python source and runs it (torch/fx/graph.py).
"""

from __future__ import annotations

import dataclasses
import enum
import keyword
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from trtconv.export.program.expression import SYMBOL, require_expression
from trtconv.export.program.operators import require_operator
from trtconv.export.program.treespec import require_treespec

MOST_LEVELS = 200
MOST_INTEGER = 2**63
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,511}", re.ASCII)
# A weight's name as torch makes it of attribute names and the keys of ModuleDict; it ends up between double quotes.
_QUALIFIED = re.compile(r"[\w.\-:+/@#$ \[\]()=,]{0,1024}")
_PLAIN = re.compile(r"[\w.+\-<>= ]{0,256}")
_FILE = re.compile(r"(weight|tensor)_[0-9]{1,9}", re.ASCII)
# The rest (source_fn_stack, from_node, custom, ...) names objects that torch looks up; exporting needs none of it.
_METADATA = ("stack_trace", "nn_module_stack", "torch_fn")


class SchemaError(ValueError):
    """What a field holds and may not: `where` is its path in the JSON, `text` the value, `why` the reason."""

    def __init__(self, where: str, text: object, why: str) -> None:
        super().__init__(f"{where}: {text!r:.120} {why}")
        self.where, self.text, self.why = where, text, why


def _require_name(text: str) -> None:
    if not _NAME.fullmatch(text) or keyword.iskeyword(text):
        raise ValueError("is not a name")


def _require_name_or_nothing(text: str) -> None:
    if text:
        _require_name(text)


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], None]:
    def require(text: str) -> None:
        if not pattern.fullmatch(text):
            raise ValueError(f"is {what}")

    return require


def _refused(text: str) -> None:
    raise ValueError("is an object besides tensors, which could run code")


def _anything(text: str) -> None:
    """Text that torch keeps as text: a message, an argument of an operator."""


_require_qualified = _matching(_QUALIFIED, "not the name of a weight or a module")
_require_plain = _matching(_PLAIN, "no plain word")
_require_symbol = _matching(SYMBOL, "not a symbol of a size")
_require_file = _matching(_FILE, "an object besides tensors, which could run code, or not a file of weights")

# A dict's keys have the rule of its field with a star.
RULES: Mapping[str, Callable[[str], None]] = {
    "Device.type": _matching(re.compile("[a-z]{1,16}"), "no device"),
    "SymExpr.expr_str": require_expression,
    "SymIntArgument.as_name": _require_name,
    "SymFloatArgument.as_name": _require_name,
    "SymBoolArgument.as_name": _require_name,
    "TensorArgument.name": _require_name,
    "TokenArgument.name": _require_name,
    "GraphArgument.name": _require_name,
    "CustomObjArgument.name": _refused,
    "CustomObjArgument.class_fqn": _refused,
    "Argument.as_string": _anything,
    "Argument.as_strings": _anything,
    "Argument.as_operator": require_operator,
    "Argument.as_string_to_argument*": _require_plain,
    "NamedArgument.name": _require_name_or_nothing,
    "Node.target": require_operator,
    "Node.metadata": _anything,
    "Node.metadata*": _require_plain,
    "Node.name": _require_name_or_nothing,
    "Graph.tensor_values*": _require_name,
    "Graph.sym_int_values*": _require_name,
    "Graph.sym_bool_values*": _require_name,
    "Graph.sym_float_values*": _require_name,
    "Graph.custom_obj_values*": _refused,
    "ConstantValue.as_string": _anything,
    "InputToConstantInputSpec.name": _require_name,
    "InputToParameterSpec.parameter_name": _require_qualified,
    "InputToBufferSpec.buffer_name": _require_qualified,
    "InputToTensorConstantSpec.tensor_constant_name": _require_qualified,
    "InputToCustomObjSpec.custom_obj_name": _refused,
    "BufferMutationSpec.buffer_name": _require_qualified,
    "ParameterMutationSpec.parameter_name": _require_qualified,
    "GradientToParameterSpec.parameter_name": _require_qualified,
    "GradientToUserInputSpec.user_input_name": _require_name,
    "UserInputMutationSpec.user_input_name": _require_name,
    "ModuleCallSignature.in_spec": require_treespec,
    "ModuleCallSignature.out_spec": require_treespec,
    "ModuleCallSignature.forward_arg_names": _require_name,
    "ModuleCallEntry.fqn": _require_qualified,
    "NamedTupleDef.field_names": _require_name,
    "GraphModule.metadata": _anything,
    "GraphModule.metadata*": _require_plain,
    "GraphModule.treespec_namedtuple_fields*": _require_qualified,
    "ExportedProgram.opset_version*": _require_plain,
    "ExportedProgram.range_constraints*": _require_symbol,
    "ExportedProgram.verifiers": _require_plain,
    "ExportedProgram.torch_version": _require_plain,
    "ExportedProgram.guards_code": _anything,
    "PayloadMeta.path_name": _require_file,
    "PayloadConfig.config*": _require_qualified,
}


def checked(kind: type, data: Any) -> Any:
    """`data` as the schema's dataclass `kind` takes it, with nothing in it that the schema does not name.

    Guards (Python source), custom metadata and what names objects to look up are left out: exporting needs none of it.
    Raises SchemaError.
    """
    return _checked(kind, data, kind.__name__, "", 0)


def _checked(hint: Any, data: Any, rule: str, where: str, level: int) -> Any:
    if level > MOST_LEVELS:
        raise SchemaError(where, "...", f"is nested more than {MOST_LEVELS} deep")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _checked(arguments[0], data, rule, where, level)
    if origin in (typing.Union, types.UnionType):
        inner = next(a for a in arguments if a is not type(None))
        return None if data is None else _checked(inner, data, rule, where, level)
    if origin is list:
        rows = _typed(data, list, where)
        return [_checked(arguments[0], v, rule, f"{where}[{i}]", level + 1) for i, v in enumerate(rows)]
    if origin is dict:
        return _checked_table(arguments[1], _typed(data, dict, where), rule, where, level)
    if dataclasses.is_dataclass(hint):
        return _checked_fields(hint, _typed(data, dict, where), where, level)
    return _checked_leaf(hint, data, rule, where)


def _checked_table(hint: Any, data: dict[str, Any], rule: str, where: str, level: int) -> dict[str, Any]:
    for key in data:
        _apply(rule + "*", key, where)
    if rule == "Node.metadata":
        data = {k: v for k, v in data.items() if k in _METADATA}
    if rule == "GraphModule.metadata":
        data = {}
    return {k: _checked(hint, v, rule, f"{where}.{k}", level + 1) for k, v in data.items()}


def _checked_fields(hint: Any, data: dict[str, Any], where: str, level: int) -> dict[str, Any]:
    from torch._export.serde import schema
    from torch._export.serde.union import _Union

    hints = typing.get_type_hints(hint, globalns=vars(schema), include_extras=True)
    if issubclass(hint, _Union) and (len(data) != 1 or next(iter(data)) not in hints):
        raise SchemaError(where, sorted(data)[:3], f"is not a {hint.__name__} of this torch")
    fields = {n: h for n, h in hints.items() if n in data and not n.startswith("_")}
    values = {
        n: _checked(h, data[n], f"{hint.__name__}.{n}", f"{where}.{n}".lstrip("."), level + 1)
        for n, h in fields.items()
    }
    if "guards_code" in values:
        values["guards_code"] = []
    return values


def _checked_leaf(hint: Any, data: Any, rule: str, where: str) -> Any:
    if hint is str:
        return _apply(rule, data, where)
    if hint is bool and rule.endswith(".as_none"):
        # torch wrote () for None before it wrote true.
        return True if data in (True, []) else _typed(data, bool, where)
    if hint is float:
        return data if data in ("Infinity", "-Infinity", "NaN") else _typed(data, (int, float), where)
    if isinstance(hint, type) and issubclass(hint, enum.IntEnum):
        if _typed(data, int, where) not in {int(m) for m in hint}:
            raise SchemaError(where, data, f"is not a {hint.__name__}")
        return data
    if hint is int and abs(_typed(data, int, where)) > MOST_INTEGER:
        raise SchemaError(where, data, "is beyond 64 bits")
    if hint in (int, bool):
        return _typed(data, hint, where)
    raise SchemaError(where, data, "is of a kind that this trtconv does not read")


def _typed(data: Any, kind: Any, where: str) -> Any:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(data) not in kinds:
        raise SchemaError(where, data, f"is not {' or '.join(k.__name__ for k in kinds)}")
    return data


def _apply(rule: str, text: Any, where: str) -> Any:
    require = RULES.get(rule)
    if require is None:
        raise SchemaError(where, text, f"is a field ({rule}) that this trtconv does not read")
    if not isinstance(text, str):
        raise SchemaError(where, text, "is not text")
    try:
        require(text)
    except ValueError as error:
        raise SchemaError(where, text, str(error)) from error
    return text
