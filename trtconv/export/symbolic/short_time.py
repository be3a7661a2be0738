"""torch.stft with frames whose length is not a power of two, and torch.istft, by a matrix of sines and cosines.

The export of the first is an STFT node, which ONNX Runtime computes with an error that grows with the length of such
frames: 1.6e-4 of the spectrum's magnitude at 640 samples, 7e-4 at 2047 (powers of two: 2e-6). No file that holds it can
then be shown to equal the module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.order import tensor_unfold
from trtconv.export.symbolic.sizes import arange, is_symbolic

# The values of a window from the indices of its elements and the index at which it has gone round, both FP.
Window = Callable[[Any, Any], Any]
# A matrix of L / 2 + 1 columns of two parts and L rows: 34 MB.
MOST = 2048


def stft(
    func: Any,
    x: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    **others: Any,
) -> Any:
    """[.., T] FP32 to [.., bins, frames], complex or with a last axis of two; powers of two are left to ONNX's STFT."""
    import torch
    import torch.nn.functional as F

    if not isinstance(n_fft, int) or not 0 < n_fft <= MOST or n_fft & (n_fft - 1) == 0 or any(others.values()):
        return NotImplemented
    if x.dtype != torch.float32 or (window is not None and window.dtype != torch.float32):
        return NotImplemented
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _frame_weights(n_fft, win_length, window, x.device)
    if center:
        batched = x if x.dim() == 2 else x.unsqueeze(0)
        padded = F.pad(batched.unsqueeze(0), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(0)
        x = padded if x.dim() == 2 else padded.squeeze(0)
    frames = tensor_unfold(None, x, -1, n_fft, hop) * weights
    real, imaginary = fourier_columns(n_fft, onesided is None or onesided, x.device)
    scale = n_fft**-0.5 if normalized else 1.0
    parts = [(frames @ columns).transpose(-1, -2) * scale for columns in (real, imaginary)]
    return torch.complex(*parts) if return_complex else torch.stack(parts, -1)


def istft(
    func: Any,
    x: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """Complex64 [.., bins, frames] to [.., T]: frames are added up by a transposed convolution, as vocoders do it.

    The sum is divided by that of the squared windows (aten/src/ATen/native/SpectralOps.cpp), whose vanishing there
    torch refuses and a file cannot.
    """
    import torch
    import torch.nn.functional as F

    plain = isinstance(n_fft, int) and 0 < n_fft <= MOST and onesided is not False and not return_complex
    if not plain or x.dtype != torch.complex64 or (window is not None and window.dtype != torch.float32):
        return NotImplemented
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _frame_weights(n_fft, win_length, window, x.device)
    parts = torch.view_as_real(x if x.dim() == 3 else x.unsqueeze(0))
    rows = torch.cat((parts[..., 0], parts[..., 1]), 1)
    scale = n_fft**0.5 if normalized else 1.0
    kernel = inverse_rows(n_fft, x.device) * (weights * scale)
    total = F.conv_transpose1d(rows, kernel.unsqueeze(1), stride=hop)
    covered = F.conv_transpose1d(torch.ones_like(rows[:1, :1]), (weights * weights)[None, None], stride=hop)
    start = n_fft // 2 if center else 0
    full = n_fft + hop * (rows.shape[-1] - 1)
    end = full - start if length is None else start + length
    signal = (total[..., start:end] / covered[..., start:end]).squeeze(1)
    if length is not None and not is_symbolic(length) and not is_symbolic(full) and end > full:
        signal = F.pad(signal, (0, end - full))
    return signal if x.dim() == 3 else signal.squeeze(0)


def _frame_weights(n_fft: int, win_length: Any, window: Any, device: Any) -> Any:
    """What each of the n_fft samples of a frame is weighted by; a shorter window lies in the middle."""
    import torch
    import torch.nn.functional as F

    size = n_fft if win_length is None else win_length
    weights = torch.ones(size, device=device) if window is None else window
    left = (n_fft - size) // 2
    return F.pad(weights, (left, n_fft - size - left)) if size < n_fft else weights


def inverse_rows(length: int, device: Any = None) -> Any:
    """[2 bins, length] FP32: what the real and then the imaginary parts of the bins of a real signal add to it."""
    import torch

    real, imaginary = (part.transpose(0, 1) for part in fourier_columns(length, True))
    # Each bin but the first, and the last of an even length, stands for its mirror image too.
    twice = torch.full((len(real), 1), 2.0 / length)
    twice[0] = 1.0 / length
    if length % 2 == 0:
        twice[-1] = 1.0 / length
    return torch.cat((real * twice, imaginary * twice)).to(device)


def fourier_columns(length: int, onesided: bool, device: Any = None) -> tuple[Any, Any]:
    """Cosines and negative sines [length, bins], FP32, computed in FP64 from angles within one turn."""
    import numpy as np
    import torch

    bins = length // 2 + 1 if onesided else length
    turns = np.outer(np.arange(length), np.arange(bins)) % length
    angles = 2 * np.pi * turns / length
    negative_sine = np.where(2 * turns % length == 0, 0.0, -np.sin(angles))
    real, imaginary = (torch.from_numpy(part.astype(np.float32)) for part in (np.cos(angles), negative_sine))
    return real.to(device), imaginary.to(device)


def moving_window(formula: Window, fixed: Callable[[int, bool], Any] | None = None) -> Callable[..., Any]:
    """The handler of a window whose length is a size: `formula` gives its values, but 1 for a window of one element.

    A length that is a number goes to `fixed`, or stays with torch. The window goes once round in its length
    (`periodic`), or in one less.
    """

    def window(
        func: Any,
        window_length: Any,
        periodic: bool = True,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Any:
        import torch

        dtype = torch.get_default_dtype() if dtype is None else dtype
        if not dtype.is_floating_point:
            return NotImplemented
        if fixed is not None and isinstance(window_length, int):
            return fixed(window_length, periodic).to(device=device, dtype=dtype)
        if not is_symbolic(window_length):
            return NotImplemented
        length = torch.full((), window_length, dtype=dtype, device=device)
        last = length if periodic else length - 1.0
        values = formula(arange(window_length, length).to(dtype), last)
        return torch.where(length == 1.0, torch.ones_like(values), values)

    return window


def cosine_window(*coefficients: float) -> Callable[..., Any]:
    """The handler of a window c0 - c1 cos(a) + c2 cos(2 a) over one turn of `a`, whose length may be a size.

    Of a number it is a constant: ONNX's HammingWindow has 25/46 where torch has 0.54.
    """

    def cosines(index: Any, last: Any) -> Any:
        import torch

        angle = index * (2.0 * math.pi) / last.clamp(min=1.0)
        return sum((-1) ** k * c * torch.cos(k * angle) for k, c in enumerate(coefficients))

    def constant(length: int, periodic: bool) -> Any:
        import numpy as np
        import torch

        angle = np.arange(length) * (2.0 * np.pi) / max(1, length if periodic else length - 1)
        values = sum((-1) ** k * c * np.cos(k * angle) for k, c in enumerate(coefficients))
        return torch.from_numpy(np.ones(1) if length == 1 else np.asarray(values))

    return moving_window(cosines, constant)


def bartlett_window() -> Callable[..., Any]:
    """The handler of torch.bartlett_window for a length read from a shape: a ramp to 1 and down again."""

    def ramps(index: Any, last: Any) -> Any:
        import torch

        ramp = index * (2.0 / last.clamp(min=1.0))
        return torch.where(index * 2.0 <= last, ramp, 2.0 - ramp)

    return moving_window(ramps)
