"""A network input or output as the user names it: `images:float32[N,3,H,W]`, `ids:int64[N,T]=0:30521`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trtconv.core.dtypes import DTYPES, DType, parse_dtype
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.derived import derived_from, is_derived, names_of, size_of
from trtconv.core.shape_space.space import ShapeSpace, require_size

_SPEC = re.compile(
    r"(?:(?P<parameter>[^:\[\]=]+)=)?"
    # A name may hold a colon, as TensorFlow's `input:0` does; a dtype begins with a letter.
    r"(?P<name>[^\[\]=]*?[^:\[\]=])(?::(?P<dtype>[A-Za-z]\w*))?\[(?P<dims>[^\]]*)\](?:=(?P<range>\S+))?\Z"
)
# A name, or the expression that an exporter gives an output's dim: `(H - 1)//2 + 1`, `Max(1, 4*N)`.
_DIM_NAME = re.compile(r"(?=.*[A-Za-z_])[\w(][\w \t+*/%(),<>=-]*\Z")
_COMMA = re.compile(r",(?![^(]*\))")

Dim = int | str


@dataclass(frozen=True)
class TensorSpec:
    """Name, dtype and dims of a tensor; a dim is an integer or the name of a dim of the shape space.

    `value_range` (inclusive for integers) bounds the sample values; None means the default of the dtype.
    `parameter` is the parameter of forward that it goes to, where that has another name.
    """

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    value_range: tuple[float, float] | None = None
    parameter: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidRequestError for a value range that is empty or that the dtype cannot hold."""
        if self.value_range is None:
            return
        (low, high), (least, most) = self.value_range, self.dtype.limits()
        if not least <= low <= high <= most:
            range_text = f"{_number(low)}:{_number(high)}"
            if low > high:
                raise InvalidRequestError(
                    f"the value range {range_text} of input '{self.name}' begins above its end",
                    hint=f"write {_number(high)}:{_number(low)} (in trtconv.toml [{_number(high)}, {_number(low)}])",
                )
            ends = f"{least:g} to {most:g}" if self.dtype.kind != "int" else f"{least:.0f} to {most:.0f}"
            raise InvalidRequestError(
                f"the value range {range_text} of input '{self.name}' is not a valid {self.dtype.name} range",
                hint=f"write LOW:HIGH (in trtconv.toml [LOW, HIGH]) within {ends}"
                + (", the whole numbers that FP64 holds" if most < high and self.dtype.name == "int64" else ""),
            )

    def __str__(self) -> str:
        tail = f"={':'.join(_number(v) for v in self.value_range)}" if self.value_range else ""
        return f"{self.name}:{self.dtype.name}[{','.join(str(d) for d in self.dims)}]{tail}"

    def __repr__(self) -> str:
        """Its text, as `parse_tensor` reads it; without a parameter of another name."""
        return f"TensorSpec('{self}')"

    def shape(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The integer shape at `dims`."""
        return tuple(size_of(d, dims) for d in self.dims)

    def names(self) -> tuple[str, ...]:
        """The named dims in order, those of a derived dim in its place."""
        return tuple(n for d in self.dims for n in names_of(d))


def _number(value: float) -> str:
    """The shortest text that gives the same number again."""
    return short if float(short := f"{value:g}") == value else repr(value).removesuffix(".0")


def parse_dims(text: str, owner: str) -> tuple[Dim, ...]:
    """Parse `N,3,H,W`; blanks are ignored, an empty text is a scalar."""
    dims: list[Dim] = []
    for word in (w.strip() for w in _COMMA.split(text)) if text.strip() else ():
        if word.isdecimal():
            require_size(word, f"input '{owner}'")
            dims.append(int(word))
        elif _DIM_NAME.match(word):
            dims.append(word)
        else:
            raise InvalidRequestError(
                f"cannot read the dim '{word}' of input '{owner}'",
                hint="a dim is an integer, a name, or follows from named ones, e.g. [N,3,H,W] or [N,P+S]",
            )
    return tuple(dims)


def parse_tensor(text: str) -> TensorSpec:
    """Parse `[PARAMETER=]NAME[:DTYPE][D0,D1,...][=LOW:HIGH]`; the dtype defaults to float32."""
    match = _SPEC.match(text.strip())
    if not match:
        raise InvalidRequestError(
            f"cannot read the input '{text}'", hint="write NAME:DTYPE[D0,D1,...], e.g. images:float32[N,3,H,W]"
        )
    name = match["name"].strip()
    if not match["dtype"] and name in {d.name for d in DTYPES}:
        raise InvalidRequestError(
            f"the input '{text}' has no name", hint=f"write images:{text}, in Python inputs={{'images': '{text}'}}"
        )
    dtype = parse_dtype(match["dtype"] or "float32")
    values = parse_value_range(match["range"], name)
    parameter = (match["parameter"] or "").strip()
    return TensorSpec(name, dtype, parse_dims(match["dims"], name), values, parameter)


def parse_value_range(text: str | None, owner: str) -> tuple[float, float] | None:
    """Parse `LOW:HIGH`; None stays None."""
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError as error:
        raise InvalidRequestError(
            f"cannot read the value range '{text}' of input '{owner}'", hint="write LOW:HIGH, e.g. 0:1"
        ) from error
    ends = zip((low, high), bounds, strict=True)
    if any(re.fullmatch(r"\s*[-+]?\d+\s*", end) and int(end) != value for end, value in ends):
        raise InvalidRequestError(
            f"the value range '{text}' of input '{owner}' has a whole number that FP64 does not hold",
            hint=f"write one within -{2**53} to {2**53 - 1}",
        )
    return bounds


def lay_over(model: TensorSpec, override: TensorSpec | None) -> TensorSpec:
    """An input of a model with the dims and the value range that a user named. Raises InvalidRequestError."""
    if override is None:
        return model
    if override.dtype != model.dtype:
        raise InvalidRequestError(
            f"input '{model.name}' is {model.dtype.name} in the model, not {override.dtype.name}",
            hint=f"write {TensorSpec(model.name, model.dtype, override.dims)}",
        )
    if len(override.dims) != len(model.dims):
        raise InvalidRequestError(
            f"input '{model.name}' has {len(model.dims)} dims in the model, not {len(override.dims)}",
            hint=f"it is {model}",
        )
    for axis, (old, new) in enumerate(zip(model.dims, override.dims, strict=True)):
        if isinstance(old, int) and old != new:
            raise InvalidRequestError(
                f"dim {axis} of input '{model.name}' is fixed at {old} in the model, not {new}",
                hint="export the module with that dim dynamic",
            )
    return TensorSpec(model.name, model.dtype, override.dims, override.value_range or model.value_range)


def value_ranges(specs: Iterable[TensorSpec]) -> dict[str, tuple[float, float]]:
    """The value ranges of the inputs that have one, by name."""
    return {spec.name: spec.value_range for spec in specs if spec.value_range is not None}


def require_ranges(specs: Iterable[TensorSpec], space: ShapeSpace) -> None:
    """Raise InvalidRequestError when a named dim has no range, or a range names a dim that no input has."""
    specs = tuple(specs)
    used = {n for s in specs for n in s.names()}
    unused = [n for n in space if n not in used]
    missing = list(dict.fromkeys(n for s in specs for n in s.names() if n not in space))
    for spec in specs:
        for name in spec.names():
            if name in space:
                continue
            if not name.isidentifier():
                raise InvalidRequestError(
                    f"the dim '{name}' of input '{spec.name}' is neither an integer nor a name, nor follows from named "
                    "ones by +, * and // and a number",
                    hint="give it a name of its own with --input, and its range with --dynamic",
                )
            # As many that nobody uses: a name was mistyped, and is not missing.
            mistyped = f"; no input has a dim '{unused[0]}'" if unused else ""
            others = f", nor have {', '.join(n for n in missing if n != name)}" if len(missing) > 1 else ""
            raise InvalidRequestError(
                f"input '{spec.name}' has a dim '{name}' without a range{others}{mistyped}",
                hint=f"{'call it' if unused else 'add'} --dynamic " + " ".join(f"{n}=MIN:OPT:MAX" for n in missing),
            )
    _require_derivable(specs, space)
    if unused and specs:
        raise InvalidRequestError(
            f"no input has a dim called '{unused[0]}'",
            hint="the dims of the inputs are: " + (", ".join(sorted(used)) or "none by name"),
        )


def _require_derivable(specs: tuple[TensorSpec, ...], space: ShapeSpace) -> None:
    """Raise InvalidRequestError for a derived dim that is below 0."""
    for spec, dim in ((s, d) for s in specs for d in s.dims if is_derived(d)):
        if space[dim].min < 0:
            raise InvalidRequestError(
                f"the dim '{dim}' of input '{spec.name}' is {space[dim].min} at the least sizes",
                hint="raise the least size of " + " or ".join(derived_from(dim)),
            )
