"""How images become input values: stated by the user, since no network says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

LAYOUTS = ("NCHW", "NHWC")
KEYS = ("size", "crop", "mean", "std", "layout", "scale", "order")
EXAMPLE = "--preprocess size=224,mean=0.485/0.456/0.406,std=0.229/0.224/0.225,layout=NCHW"


@dataclass(frozen=True)
class Preprocess:
    """(pixel / scale - mean) / std, per channel.

    The image is resized (bilinear) to `size` (height, width), or its shorter side to `crop[0]` and its centre of
    `size` cut out. `scale` divides the 0 to 255 of the file; `order` is RGB, BGR or L (grey).
    """

    size: tuple[int, int]
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "NCHW"
    scale: float = 255.0
    order: str = "RGB"
    crop: int | None = None


def parse_preprocess(text: str) -> Preprocess:
    """Parse `size=224,mean=0.5,std=0.5,layout=NCHW`; channels are separated by `/`, height and width by `x`.

    Raises InvalidRequestError for an unknown key or a value that cannot be read.
    """
    words: dict[str, str] = {}
    for part in (p.strip() for p in text.split(",") if p.strip()):
        key, equals, value = part.partition("=")
        if not equals or key not in KEYS:
            near = did_you_mean(key, KEYS)
            raise InvalidRequestError(f"cannot read '{part}' of --preprocess{near}", hint=EXAMPLE)
        words[key] = value
    if "size" not in words:
        raise InvalidRequestError("--preprocess does not say the size of the images", hint=EXAMPLE)
    order, layout = words.get("order", "RGB").upper(), words.get("layout", "NCHW").upper()
    if layout not in LAYOUTS or order not in ("RGB", "BGR", "L"):
        raise InvalidRequestError(
            f"--preprocess has no layout={layout} with order={order}",
            hint="layout is NCHW or NHWC, order is RGB, BGR or L",
        )
    try:
        height, _, width = words["size"].partition("x")
        size = (int(height), int(width or height))
        mean, std = (tuple(float(v) for v in words.get(k, d).split("/")) for k, d in (("mean", "0"), ("std", "1")))
        scale, crop = float(words.get("scale", "255")), int(words["crop"]) if "crop" in words else None
    except ValueError as error:
        raise InvalidRequestError(f"cannot read --preprocess '{text}': {error}", hint=EXAMPLE) from error
    channels = 1 if order == "L" else 3
    if min(size) < 1 or scale == 0 or 0.0 in std or any(len(v) not in (1, channels) for v in (mean, std)):
        raise InvalidRequestError(
            f"--preprocess '{text}' needs a size over 0, a scale and std that are not 0, and 1 or {channels} channels",
            hint=EXAMPLE,
        )
    return Preprocess(size, mean, std, layout, scale, order, crop)


def read_image(path: Path, how: Preprocess) -> Array:
    """One image as float32 [C,H,W] or [H,W,C]. Raises InvalidRequestError for a file that is not an image."""
    import numpy as np

    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingDependencyError("reading images needs Pillow", hint="pip install pillow") from error
    height, width = how.size
    try:
        with Image.open(path) as opened:
            image = opened.convert("L" if how.order == "L" else "RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise InvalidRequestError(f"'{path}' cannot be read as an image: {error}", hint="leave it out") from error
    bilinear = Image.Resampling.BILINEAR
    if how.crop is not None:
        ratio = how.crop / min(image.size)
        image = image.resize((round(image.width * ratio), round(image.height * ratio)), bilinear)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    else:
        image = image.resize((width, height), bilinear)
    values = np.asarray(image, np.float32).reshape(height, width, -1)
    if how.order == "BGR":
        values = values[..., ::-1]
    scaled = (values / how.scale - np.array(how.mean, np.float32)) / np.array(how.std, np.float32)
    result: Array = np.ascontiguousarray(scaled.transpose(2, 0, 1) if how.layout == "NCHW" else scaled, np.float32)
    return result
