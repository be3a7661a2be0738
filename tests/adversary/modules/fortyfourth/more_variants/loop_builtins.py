# ruff: noqa: E501 - attacks are written as users write them
"""What Python's own functions and numbers give within a loop over a moving length, which only a script holds."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
LOOP = {"dims": "N=1:2:3 T=1:9:40", "kinds": ("normal", "halves", "zeros"), "feeds": tuple(values_at(X4, N=n, T=t) for n, t in ((1, 1), (1, 2), (1, 3), (2, 5), (1, 10), (1, 17), (1, 33), (1, 39), (3, 40)))}


class A44Walk(nn.Module):
    """A cell that walks along the steps."""
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)


@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4831RoundOfHalves(A44Walk):
    """round of a half of the step goes to even, and names the row that is read."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, round(t / 2)], h)
        return h
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4832DivmodOfNegatives(A44Walk):
    """divmod of a step less seven."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            q, r = divmod(t - 7, 3)
            h = self.cell(x[:, t] * q + r, h)
        return h
@attack(X4, **LOOP)
class A4833FloatsOfTheStep(A44Walk):
    """A remainder of floats, a floor of a negative quotient, a power of a half, a cut towards zero."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            a = (t - 5.5) % 2.0
            b = (t - 5) // 2.0
            c = 0.5 ** t
            h = self.cell(x[:, t] * a + b, h) + c + int((t - 5) / 2)
        return h
@attack(X4, **LOOP)
class A4834BitsOfTheStep(A44Walk):
    """And, or, exclusive or and shifts of the step."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t] * ((t & 3) + (t >> 2)) + ((t ^ 5) | 1), h) + (1 << (t % 5))
        return h
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4835LogsOfTheStep(A44Walk):
    """A cosine schedule, a floor of a logarithm of two, a ceil of a root, and a greatest common divisor."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        n = x.shape[1]
        for t in range(n):
            w = 0.5 * (1 + math.cos(math.pi * t / n))
            k = math.floor(math.log2(t + 1)) + math.ceil(math.sqrt(t))
            h = w * self.cell(x[:, t], h) + k + math.gcd(t, 6)
        return h
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4836ListOfNumbers(A44Walk):
    """A list of whole numbers that grows: its sum, its least, its place of the last, sorted and turned."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        seen = [3]
        for t in range(x.shape[1]):
            seen.append((seen[-1] * 7 + t) % 11)
            h = self.cell(x[:, t], h) + sum(seen[-3:]) + min(seen) + max(seen)
        return h, h * len(seen)
@attack(X4, **LOOP)
class A4837TwoStepsAtATime(A44Walk):
    """A range with a step of three, one that goes down by two, an enumerate from one."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(0, x.shape[1], 3):
            h = self.cell(x[:, t], h)
        for i, t in enumerate(range(x.shape[1] - 1, -1, -2), 1):
            h = self.cell(x[:, t] / i, h)
        return h
@attack(X4, **LOOP)
class A4838BooleansThatStay(A44Walk):
    """A flag of the size that changes at the seventh step, chained comparisons, an `or` of numbers, a conditional of two types."""
    def forward(self, x):
        h, late = torch.zeros(x.shape[0], 4), False
        for t in range(x.shape[1]):
            if not late and t >= 7:
                late = True
                h = h * 0.5
            h = self.cell(x[:, t], h) + (2.0 if late and t < 12 else -1.0) + (1 if 3 < t <= 9 else 0)
        return h, h * (1.0 if late else 2.0)
@attack(X4, **LOOP)
class A4839WhileOfTwoCounters(A44Walk):
    """Two counters that meet in the middle, one of them going twice as fast."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        i, j = 0, x.shape[1] - 1
        while i < j:
            h = self.cell(x[:, i] - x[:, j], h)
            i += 1
            j -= 2 if j % 2 == 0 else 1
        return h, h * (j - i)
@attack(X4, **LOOP)
class A4840NestedTriangle(A44Walk):
    """A triangle of two loops: the inner one over all steps before, with an end by a minimum."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        out = []
        for t in range(x.shape[1]):
            s = torch.zeros(x.shape[0], 4)
            for u in range(max(0, t - 2), t):
                s = s + x[:, u] * (t - u)
            h = self.cell(s, h)
            out.append(h + s)
        return torch.stack(out, 1)
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4841WrittenIntoABuffer(A44Walk):
    """Results are written into rows of a buffer from its end, every second one negated, by a slice of one."""
    def forward(self, x):
        n, t = x.shape[0], x.shape[1]
        h, buf = torch.zeros(n, 4), torch.zeros(n, t, 4)
        for i in range(t):
            h = self.cell(x[:, i], h)
            buf[:, t - 1 - i] = h
            if i % 2 == 1:
                buf[:, i:i + 1] += 1
        return buf
@attack(X4, **LOOP)
class A4842SlidingSum(A44Walk):
    """A window of the four steps before by a slice whose start is a maximum, its mean, its largest place."""
    def forward(self, x):
        h, out = torch.zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            w = x[:, max(0, t - 3):t + 1]
            h = self.cell(w.mean(1), h)
            out.append(h * w.shape[1] + w.argmax(1))
        return torch.stack(out, 1)
@attack(X4, **LOOP)
class A4843StateOfWholeNumbers(nn.Module):
    """A loop whose state are ids: counts that wrap in bytes, a parity, a product modulo a prime."""
    def forward(self, x):
        a = torch.ones(x.shape[0], dtype=torch.uint8)
        b = torch.ones(x.shape[0], dtype=torch.int64)
        for t in range(x.shape[1]):
            on = (x[:, t, 0] > 0)
            a = a * 3 + on
            b = (b * 31 + on.long() * t) % 1009
        return a, b, a >> 3
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4844HalfState(nn.Module):
    """A state in half that counts beyond what halves count, and one in bfloat16."""
    def forward(self, x):
        a, b = torch.zeros(x.shape[0], 4, dtype=torch.float16), torch.full((x.shape[0], 4), 240.0, dtype=torch.bfloat16)
        for t in range(x.shape[1]):
            a = a * 0.9 + x[:, t].half() * 100
            b = b + (x[:, t] > 0)
        return a.float().round(), b.float()
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4845ReturnsFromWithin(A44Walk):
    """The loop returns from within at the twentieth step, and at a length of one before it begins."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        if x.shape[1] == 1:
            return x[:, 0] * 2
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            if t == 20:
                return h + 5
        return h
@attack(X4, **LOOP)
class A4846FrozenByLengths(A44Walk):
    """Rows end where their last value is large: a mask freezes them, a counter tensor counts, the order of where matters with NaN."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        n = torch.zeros(x.shape[0], dtype=torch.int64)
        live = torch.ones(x.shape[0], 1, dtype=torch.bool)
        for t in range(x.shape[1]):
            h = torch.where(live, self.cell(x[:, t], h), h)
            n += live[:, 0]
            live = live & (x[:, t, :1] < 1.5)
        return h, n, live
@attack(X4, **LOOP)
class A4847PadWithinALoop(A44Walk):
    """Each step shifts a line by padding and cutting, and joins what came before: a tensor that grows."""
    def forward(self, x):
        line, h = torch.zeros(x.shape[0], 3, 4), torch.zeros(x.shape[0], 4)
        grown = x[:, :1]
        for t in range(x.shape[1]):
            line = torch.cat([line[:, 1:], x[:, t:t + 1]], 1)
            h = self.cell(line.amax(1), h)
            grown = F.pad(grown, (0, 0, 0, 1)) + h[:, None]
        return grown, line
@attack(X4, **LOOP, refused="the path through the module depends on the size")
class A4848ViewsOfTheLoop(A44Walk):
    """A view of the state is taken before the loop, which writes the state in place; the first result is kept and written."""
    def forward(self, x):
        s = torch.zeros(x.shape[0], 4)
        v = s[:, :2]
        first = s
        for t in range(x.shape[1]):
            s += x[:, t]
            if t == 4:
                first = s.clone()
                s.clamp_(max=1.0)
        return s, v * 2, first
@attack(X4, **LOOP)
class A4849SumsInAnOddOrder(A44Walk):
    """x[-t], x[t - n] and x[~t] in a loop, a step that is a size over two, a sum that begins with an integer."""
    def forward(self, x):
        n = x.shape[1]
        h, total = torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4)
        for t in range(n):
            h = self.cell(x[:, -t] + x[:, t - n], h)
            total = total + x[:, -1 - t] * (t - n // 2)
        return h, total
@attack(X4, **LOOP)
class A4850KeptNumbers(A44Walk):
    """The step at which a number of Python was largest, numbers swapped, a Fibonacci modulo, read behind the loop."""
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        a, b, best, at = 0, 1, -1, 0
        for t in range(x.shape[1]):
            a, b = b, (a + b) % 97
            if b > best:
                best, at = b, t
            h = self.cell(x[:, t], h) * (1 + a / 97)
        return h + best, x[:, at], h * b
