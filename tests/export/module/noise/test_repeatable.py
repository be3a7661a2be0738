"""Noise and changing state are refused: measured as rounding they would let any file pass."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export import export_model
from trtconv.export.module.noise.repeatable import difference, require_repeatable, require_same_after_many_calls
from trtconv.export.module.noise.threads import one_thread
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.noise_floor import profile
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceSample


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class LittleNoise(nn.Module):
    """In FP64 it is as large, so that it is measured as rounding."""

    def forward(self, x):
        return x + 1e-3 * torch.randn_like(x)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x):
        self.mean += 0.5
        return x - self.mean


class Counted(nn.Module):
    """The state changes, what it returns does not depend on it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x.sqrt()


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


class WarmsUp(nn.Module):
    """It gives the same until the hundredth call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x * torch.where(self.calls > 100, 0.5, 1.0)


class CountsInPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x if self.calls < 1000 else x * 2.0


class CountsInPrivate(nn.Module):
    def __init__(self):
        super().__init__()
        self._calls = 0

    def forward(self, x):
        self._calls += 1
        return x * (3.0 if self._calls > 1000 else 2.0)


class Seeds(nn.Module):
    """The same noise at every call, which no file can give."""

    def forward(self, x):
        torch.manual_seed(0)
        return x + torch.randn_like(x)


class Dithers(nn.Module):
    def forward(self, x):
        return x + 1e-6 * torch.randn_like(x)


class GrowsTable(nn.Module):
    """A table is made again when it is too small, and then kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(0), persistent=False)

    def forward(self, x):
        if self.table.shape[0] < x.shape[0]:
            self.table = torch.arange(float(x.shape[0]))
        return x + self.table[: x.shape[0], None]


def sample(module):
    runner = ModuleRunner(module)
    inputs = {"x": np.linspace(-1, 3, 12, dtype=np.float32).reshape(3, 4)}
    return runner, ReferenceSample(SamplePoint("traced", (("N", 3),)), inputs, runner(inputs), {})


@pytest.mark.parametrize("module", [Noise(), State()])
def test_what_differs_from_run_to_run_is_refused(module):
    with pytest.raises(AccuracyError, match="run again on the same inputs"):
        require_repeatable(*sample(module))


def test_what_each_call_changes_is_named():
    with pytest.raises(AccuracyError, match=r"at .*; each call changes 'mean'$"):
        require_repeatable(*sample(State()))


def test_noise_is_not_taken_for_rounding():
    """The floor that is measured is as large as the noise."""
    from trtconv.proof.sampling import measured_sample

    runner, result = sample(LittleNoise())
    measured = measured_sample(runner, result)
    assert measured.floors["output"].largest > 1e-4
    with pytest.raises(AccuracyError, match="run again on the same inputs"):
        require_repeatable(runner, measured)


@pytest.mark.parametrize("module", [Counted(), Dropped(), Dithers(), GrowsTable()])
def test_what_repeats_is_taken(module):
    require_repeatable(*sample(module))


@pytest.mark.parametrize("module", [WarmsUp(), CountsInPython()])
def test_state_that_matters_later_is_refused(module):
    runner, result = sample(module)
    with pytest.raises(AccuracyError, match="forward changes 'calls' and depends on it"):
        require_repeatable(runner, result)
    assert int(module.calls) < 10


class InClosure(nn.Module):
    """State where nobody looks for it."""

    def __init__(self):
        super().__init__()
        calls = itertools.count()
        self.step = lambda: next(calls)

    def forward(self, x):
        return x * (3.0 if self.step() > 60 else 1.0)


class GoesRound(nn.Module):
    """One call of eleven is another one, and the last of many is not."""

    def forward(self, x):
        calls = getattr(self, "_calls", 0)
        self._calls = (calls + 1) % 11
        return x + (1.0 if calls == 7 else 0.0)


def test_state_that_goes_round_shows_between_the_first_and_the_last_call():
    runner, result = sample(GoesRound())
    with pytest.raises(AccuracyError, match="after many calls than at first"):
        require_same_after_many_calls(runner, result)


def test_a_private_number_is_state():
    module = CountsInPrivate()
    with pytest.raises(AccuracyError, match="forward changes '_calls' and depends on it"):
        require_repeatable(*sample(module))


def test_state_out_of_sight_shows_after_many_calls():
    runner, result = sample(InClosure())
    require_repeatable(runner, result)
    with pytest.raises(AccuracyError, match="after many calls than at first"):
        require_same_after_many_calls(runner, result)
    require_same_after_many_calls(*sample(Counted()))


def sample_without_noise(module):
    """A sample of a module that rounds nothing."""
    runner, result = sample(module)
    output = result.outputs["output"]
    return runner, replace(result, floors={"output": profile([output], [np.zeros_like(output)]).floor(output)})


class SumsByThreads(nn.Module):
    """With one thread the last bits are others, by more than is allowed for an element that is exact by chance."""

    def __init__(self, off):
        super().__init__()
        self.off = off

    def forward(self, x):
        return x + (self.off if torch.get_num_threads() == 1 else 0.0)


@pytest.fixture
def _two_threads():
    count = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(count)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize(("off", "is_order"), [(1.2e-5, True), (1e-3, False)])
def test_the_order_of_sums_is_no_state(off, is_order):
    runner, result = sample_without_noise(SumsByThreads(off))
    before = result.outputs
    with one_thread():
        assert difference(result, runner(result.inputs)) is not None
    if is_order:
        require_same_after_many_calls(runner, result)
    else:
        with pytest.raises(AccuracyError, match="after many calls than at first"):
            require_same_after_many_calls(runner, result)
    assert result.outputs is before


class OffByLittle(nn.Module):
    """State whose effect is as little as that of another order of sums, and which does not come back."""

    def __init__(self):
        super().__init__()
        calls = itertools.count()
        self.step = lambda: next(calls)

    def forward(self, x):
        return x + (1.2e-5 if self.step() > 9 else 0.0)


def test_what_is_off_by_little_and_stays_so_is_state():
    with pytest.raises(AccuracyError, match="after many calls than at first"):
        require_same_after_many_calls(*sample_without_noise(OffByLittle()))


class Shrinks(nn.Module):
    """A weight that changes at each call, by what the norm after it hides."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)
        self.layer.register_forward_pre_hook(lambda part, inputs: part.weight.data.mul_(0.5))

    def forward(self, x):
        return torch.nn.functional.normalize(self.layer(x))


def test_a_weight_that_a_call_changes_is_state():
    with pytest.raises(AccuracyError, match=r"forward changes 'layer\.weight' and depends on it"):
        require_repeatable(*sample(Shrinks()))


def exported(tmp_path, name):
    source = ModuleSource(
        "tests.export.module.noise.test_repeatable:make", (("name", name),), base=Path(__file__).parents[4]
    )
    space = parse_space(["N=1:2:5"])
    request = ExportRequest(source, (parse_tensor("x:float32[N,4]"),), space, tmp_path / "model.onnx")
    return export_model(request, SilentProgress())


def make(name):
    return {"seeds": Seeds, "dithers": Dithers}[name]()


def test_a_file_that_draws_other_numbers_at_every_run_is_refused(tmp_path):
    with pytest.raises(AccuracyError, match=r"the file draws random numbers \(RandomNormalLike of"):
        exported(tmp_path, "seeds")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.slow
def test_a_file_whose_random_numbers_do_not_matter_is_taken_with_a_note(tmp_path):
    assert any("draws random numbers" in note for note in exported(tmp_path, "dithers").notes)


def test_rounding_as_large_as_the_outputs_is_not_allowed_at_random_values():
    from trtconv.proof.sampling import measured_sample

    class Chaotic(nn.Module):
        def forward(self, x):
            return torch.sin(x * 1e9)

    measured = measured_sample(*sample(Chaotic()))
    floor = measured.floors["output"]
    assert floor.chaotic
    assert floor.largest < 0.1


HELD = {
    "sparse": "torch.eye(4).to_sparse()",
    "rows": "torch.eye(4).to_sparse_csr()",
    "float8": "torch.eye(4).to(torch.float8_e4m3fn)",
    "quantised": "torch.quantize_per_tensor(torch.eye(4), 0.1, 0, torch.quint8)",
    "nested": "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
    "half complex": "torch.zeros(2, dtype=torch.complex32)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HELD)
def test_tensors_of_any_kind_may_be_held(write_module, export, kind):
    write_module(f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("held", {HELD[kind]})
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        return self.line(x)
""")
    assert export("net.py:Net", ["x:float32[N,4]"], "N=1:2:3").model.exists()
