"""What the first call of a process leaves outside of a module is told, wherever that is."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest
import torch

from trtconv.core.errors import AccuracyError
from trtconv.export.module.noise.fresh_process import FreshProcess
from trtconv.export.module.runner import ModuleRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process is forked on Linux alone")

SPACE = "N=1:2:4 T=2:5:9"
LEFT_OUTSIDE = {
    "Net.size": """
class Net(nn.Module):
    size = None
    def forward(self, x):
        Net.size = Net.size or x.shape[1]
        return x / Net.size
""",
    "SIZE": """
SIZE = None
class Net(nn.Module):
    def forward(self, x):
        global SIZE
        SIZE = SIZE or x.shape[1]
        return x / SIZE
""",
    "scale": """
def scale(x):
    scale.size = getattr(scale, "size", x.shape[1])
    return x / scale.size
class Net(nn.Module):
    def forward(self, x):
        return scale(x)
""",
    "Net.forward": """
class Net(nn.Module):
    def forward(self, x, sizes=[]):
        sizes.append(x.shape[1])
        return x / sizes[0]
""",
    "Net.rows": """
class Net(nn.Module):
    rows = {}
    def forward(self, x):
        return x * self.rows.setdefault(x.shape[0], torch.ones(x.shape[0], 1) / x.shape[1])
""",
    "something outside of the module": """
import os
class Net(nn.Module):
    def forward(self, x):
        return x / int(os.environ.setdefault("TRTCONV_TEST_SIZE", str(x.shape[1])))
""",
}


@pytest.mark.parametrize("name", LEFT_OUTSIDE)
def test_what_a_first_call_leaves_outside_is_refused(name, export, write_module, monkeypatch):
    monkeypatch.delenv("TRTCONV_TEST_SIZE", raising=False)
    write_module(LEFT_OUTSIDE[name])
    with pytest.raises(AccuracyError, match="from the first call of a process") as error:
        export("net.py:Net", ["x:float32[N,T]"], SPACE)
    assert f"keeps {name}" in error.value.message.replace("`", "")
    monkeypatch.delenv("TRTCONV_TEST_SIZE", raising=False)


TABLES = """
class Net(nn.Module):
    tables, longest = {}, 0
    def forward(self, x):
        t = x.shape[1]
        Net.longest = max(Net.longest, t)
        if t not in self.tables:
            self.tables[t] = torch.linspace(0, 1, t)
        return x * self.tables[t]
"""


@pytest.mark.parametrize(
    "memory", ["mmap.mmap(-1, 8)", "multiprocessing.RawArray('b', 8)", "torch.zeros(8).share_memory_()"]
)
def test_shared_memory_is_as_before_the_first_call(memory, export, write_module):
    path = write_module(f"""
import mmap, multiprocessing

SHARED = {memory}

class Net(nn.Module):
    def forward(self, x):
        if SHARED[0] == 0:
            SHARED[0] = x.shape[1]
        return x * int(SHARED[0])
""")
    with pytest.raises(AccuracyError, match="from the first call of a process"):
        export(f"{path}:Net", ["x:float32[N,T]"], SPACE)


def test_a_part_that_becomes_another_class_at_its_first_call(export, write_module):
    path = write_module("""
class Ready(nn.Module):
    def forward(self, x):
        return x * self.scale

class Net(nn.Module):
    def forward(self, x):
        self.scale = {scale}
        self.__class__ = Ready
        return x * self.scale
""".replace("{scale}", "2.0"))
    assert export(f"{path}:Net", ["x:float32[N,T]"], SPACE).model.exists()
    path.write_text(path.read_text().replace("self.scale = 2.0", "self.scale = x.shape[1]"))
    with pytest.raises(AccuracyError, match=r"'scale'.*first call|first call.*'scale'"):
        export(f"{path}:Net", ["x:float32[N,T]"], SPACE)


def test_tables_of_a_class_convert_and_no_symbols_stay_in_it(tmp_path, write_module, load):
    import trtconv

    Net = load(write_module(TABLES)).Net
    trtconv.convert(Net().eval(), inputs={"x": "float32[N,T]"}, dynamic={"N": "1:2:4", "T": "2:5:9"}, output=tmp_path)
    assert type(Net.longest) is int
    assert all(type(size) is int for size in Net.tables)
    assert Net()(torch.ones(1, 12)).shape == (1, 12)


class FirstSize(torch.nn.Module):
    size = None

    def forward(self, x):
        FirstSize.size = FirstSize.size or x.shape[0]
        return x / FirstSize.size


def rows(count):
    return {"x": np.ones((count, 2), np.float32)}


def test_each_call_is_a_first_one(monkeypatch):
    monkeypatch.setattr(FirstSize, "size", None)
    runner = ModuleRunner(FirstSize())
    with FreshProcess(runner) as fresh:
        (here,) = runner(rows(4)).values()
        assert here.max() == 0.25
        for count in (2, 5):
            (there,) = fresh.outputs(rows(count), 30.0).values()
            np.testing.assert_allclose(there, 1 / count, rtol=1e-6)
    assert fresh.outputs(rows(2), 30.0) is None


class Refusing(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] == 1:
            raise ValueError("one row")
        if x.shape[0] == 2:
            time.sleep(60)
        return x


@pytest.mark.parametrize("count", [1, 2])
def test_what_raises_or_hangs_in_the_fork_gives_nothing(count):
    with FreshProcess(ModuleRunner(Refusing())) as fresh:
        started = time.monotonic()
        assert fresh.outputs(rows(count), 1.0) is None
        assert time.monotonic() - started < 20
        assert fresh.outputs(rows(3), 1.0) is None


def test_a_fork_that_was_killed_gives_nothing():
    with FreshProcess(ModuleRunner(Refusing())) as fresh:
        os.kill(fresh._child, signal.SIGKILL)
        assert fresh.outputs(rows(3), 5.0) is None
        assert fresh.outputs(rows(3), 5.0) is None


def test_it_may_be_closed_at_once():
    for _ in range(20):
        FreshProcess(ModuleRunner(Refusing())).close()


class Sharing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(1))
        self.share_memory()

    def forward(self, x):
        self.first.copy_(torch.where(self.first == 0, torch.full((1,), float(x.shape[1])), self.first))
        return x * self.first


def test_a_buffer_is_named_and_a_fork_that_gives_nothing_is_noted(monkeypatch, tmp_path, export, write_module):
    import trtconv

    request = {"inputs": {"x": "float32[N,T]"}, "dynamic": {"N": "1:2:4", "T": "2:5:9"}, "output": tmp_path}
    with pytest.raises(AccuracyError, match="forward keeps 'first' from its first call"):
        trtconv.convert(Sharing().eval(), **request)
    monkeypatch.setattr(FreshProcess, "outputs", lambda *_: None)
    write_module("class Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n")
    notes = export("net.py:Net", ["x:float32[N,T]"], SPACE).notes
    assert any("the module ran in no fork" in n for n in notes)


LARGEST = """
LARGEST = 0

class Net(nn.Module):
    def forward(self, x):
        global LARGEST
        LARGEST = max(LARGEST, x.shape[1])
        return x + torch.linspace(0, 1, LARGEST)[: x.shape[1]]
"""


def test_a_largest_size_so_far_is_seen_between_the_ends(export, write_module):
    write_module(LARGEST)
    with pytest.raises(AccuracyError, match=r"forward keeps `LARGEST` of `net\.py` from the first call of a process"):
        export("net.py:Net", ["x:float32[N,T]"], "N=1:2:4 T=1:5:9")
