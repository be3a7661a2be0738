"""Caches by shape: found by running, empty for a trace, and the file follows every size."""

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError
from trtconv.core.tensors import parse_tensor
from trtconv.export.module.noise.first_call import UntouchedState, require_independent_of_first_call
from trtconv.export.module.noise.repeatable import require_repeatable, state
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.sizes.shape_caches import SymbolicKeys, attributes, find_shape_caches
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.reference import ReferenceSample

INPUT = parse_tensor("x:float32[N,2,H,W]")


class Head(nn.Module):
    """As detectors' heads have it: anchors are kept until an image of another size comes."""

    def __init__(self):
        super().__init__()
        self.shape = None
        self.anchors = torch.empty(0)

    def forward(self, x):
        if self.shape != x.shape:
            rows, columns = torch.arange(x.shape[2]) + 0.5, torch.arange(x.shape[3]) + 0.5
            self.anchors = torch.stack(torch.meshgrid(columns, rows, indexing="xy"))
            self.shape = x.shape
        return x * self.anchors


class Buffered(nn.Module):
    """The same with a buffer, asked for its own size."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.empty(0), persistent=False)

    def forward(self, x):
        if self.grid.shape != x.shape[2:]:
            self.grid = torch.arange(x.shape[3]).float() + torch.arange(x.shape[2]).float()[:, None]
        return x + self.grid


class ByKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def forward(self, x):
        key = (x.shape[2], x.shape[3])
        if key not in self.tables:
            self.tables[key] = torch.arange(x.shape[3]).float() + torch.arange(x.shape[2]).float()[:, None]
        return x + self.tables[key]


class Growing(nn.Module):
    """A table that grows to the longest and then stays."""

    def __init__(self):
        super().__init__()
        self.longest, self.table = 0, None

    def forward(self, x):
        if x.shape[3] > self.longest:
            self.longest, self.table = x.shape[3], torch.arange(x.shape[3]).float()
        return x + self.table[: x.shape[3]]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls < 1000 else x


class Recording(nn.Module):
    def forward(self, x):
        self.last = x * 2
        return self.last + 1


class Stale(nn.Module):
    """Keeps what came with the size, which is not a cache: another input of that size would give something else."""

    def __init__(self):
        super().__init__()
        self.shape, self.first = None, None

    def forward(self, x):
        if self.shape != x.shape:
            self.shape, self.first = x.shape, x
        return self.first + 1


def ran(module):
    """A runner that ran at three points as an export does, with its caches."""
    runner = ModuleRunner(module, [INPUT])
    before = attributes(module)
    samples = []
    for label, n, h, w in (("traced", 2, 4, 6), ("max", 3, 8, 9), ("opt", 2, 4, 6)):
        point = SamplePoint(label, (("N", n), ("H", h), ("W", w)), seed=len(samples))
        inputs = sample_inputs([INPUT], point)
        samples.append(ReferenceSample(point, inputs, runner(inputs)))
    runner.caches = find_shape_caches(runner, before, samples)
    return runner, samples


def names(attributes_of):
    return sorted(a.name for a in attributes_of)


@pytest.mark.parametrize(
    ("module", "keyed", "rewritten"),
    [(Head, ["anchors", "shape"], []), (Buffered, ["grid"], []), (ByKey, ["tables"], []), (Growing, [], []),
     (Counting, [], ["calls"]), (Recording, [], ["last"])],
)  # fmt: skip
def test_a_cache_changes_with_the_size_and_not_when_a_size_comes_again(module, keyed, rewritten):
    runner, samples = ran(module())
    assert names(runner.caches.initial) == keyed
    assert names(runner.caches.rewritten) == rewritten
    if module is not Counting:
        require_repeatable(runner, samples[0])


def test_caches_are_empty_in_the_block_and_as_before_after_it():
    runner, _ = ran(Head())
    anchors = runner.module.anchors
    with runner.caches.emptied():
        assert runner.module.shape is None
        assert runner.module.anchors.numel() == 0
        runner.module(torch.zeros(1, 2, 3, 3))
    assert runner.module.anchors is anchors
    assert runner.module.shape == (2, 2, 4, 6)


class Tried(Head):
    """A head that its constructor has tried out; with sizes as RT-DETR's decoder has them, and a table of them."""

    def __init__(self):
        super().__init__()
        self.sizes, self.rows, self.name = [[0, 0]], 0, "head"
        self(torch.zeros(1, 2, 5, 6))

    def forward(self, x):
        sizes = [[x.shape[2], x.shape[3]]]
        if self.sizes != sizes:
            self.sizes, self.rows = sizes, x.shape[2]
        return super().forward(x) * self.rows


def test_a_cache_that_was_full_before_the_first_run_is_emptied():
    runner, _ = ran(Tried())
    assert names(runner.caches.initial) == ["anchors", "rows", "shape", "sizes"]
    with runner.caches.emptied():
        module = runner.module
        assert (module.sizes, module.rows, module.shape) == ([[-1, -1]], -1, (-1, -1, -1, -1))
        assert module.anchors.shape == (0, 0, 0)
    assert runner.module.sizes == [[4, 6]]


class Reading(Tried):
    """Its first run reads what the cache had in it, so that it cannot begin without."""

    def forward(self, x):
        return super().forward(x) if self.sizes[0][0] >= 0 else x


def test_a_cache_that_the_module_needs_stays_full():
    runner, _ = ran(Reading())
    assert next(a.value for a in runner.caches.initial if a.name == "sizes") == [[5, 6]]


def test_a_counter_is_no_cache():
    runner, samples = ran(Counting())
    with pytest.raises(AccuracyError, match="forward changes 'calls' and depends on it"):
        require_repeatable(runner, samples[0])


def test_what_is_kept_of_an_input_is_no_cache():
    runner, samples = ran(Stale())
    with pytest.raises(AccuracyError):
        require_repeatable(runner, samples[2])


def test_a_dictionary_takes_symbolic_sizes_as_keys():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    size = env.create_symintnode(env.create_symbol(7, source=None or _source("a")), hint=7)
    table = SymbolicKeys({(3, 4): 1})
    table[size, 4] = 2
    assert (size, 4) in table
    assert (size + 1, 4) not in table
    assert table.get((size, 4)) == 2
    assert table[3, 4] == 1


def _source(name):
    from torch._dynamo.source import ConstantSource

    return ConstantSource(name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["Head", "ByKey", "Buffered", "Tried"])
def test_the_file_follows_the_size(export, write_module, name):
    import inspect

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    module = {"Head": Head, "ByKey": ByKey, "Buffered": Buffered, "Tried": Tried}[name]
    write_module("\n\n".join(inspect.getsource(c) for c in ([Head, Tried] if module is Tried else [module])))
    result = export(f"net.py:{name}", ["x:float32[N,2,H,W]"], "N=1:2:3 H=2:5:9 W=2:6:11")
    assert result.exporter == "dynamo"
    x = np.random.default_rng(0).normal(size=(3, 2, 7, 4)).astype(np.float32)
    expected = module()(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(OnnxRuntimeRunner(result.model)({"x": x})["output"], expected, rtol=1e-6)


class MadeOnce(nn.Module):
    """A grid for the first size that comes, stretched to every other."""

    def __init__(self):
        super().__init__()
        self.grid = None

    def forward(self, x):
        if self.grid is None:
            self.grid = torch.linspace(0, 1, x.shape[3])
        return x * self.grid.repeat(9)[: x.shape[3]]


def test_what_the_first_call_leaves_must_not_matter():
    for module, passes in ((MadeOnce(), False), (Growing(), True), (Head(), True), (ByKey(), True)):
        runner = ModuleRunner(module, [INPUT])
        before = UntouchedState(attributes(module), state(module), {})
        samples = []
        for seed, (n, h, w) in enumerate(((2, 4, 6), (3, 8, 9), (2, 4, 5))):
            point = SamplePoint("p", (("N", n), ("H", h), ("W", w)), seed=seed)
            inputs = sample_inputs([INPUT], point)
            samples.append(ReferenceSample(point, inputs, runner(inputs)))
        runner.caches = find_shape_caches(runner, before.attributes, samples)
        if passes:
            require_independent_of_first_call(runner, before, samples)
            continue
        with pytest.raises(AccuracyError, match="forward keeps 'grid' from its first call"):
            require_independent_of_first_call(runner, before, samples)


LAYERS = """
class Gain(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return x * self.gain

class Copied(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.conv = nn.Conv2d(2, 3, 3), None

    def forward(self, x):
        if self.conv is None:
            self.conv = copy.deepcopy(self.base)
        return self.conv(x)

class Alike(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.norms = None, nn.ModuleList()

    def forward(self, x):
        if self.gain is None:
            self.gain = Gain(2.0)
            self.norms.append(nn.LayerNorm(8))
        return self.norms[0](self.gain(x))

class Drawn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = None

    def forward(self, x):
        if self.conv is None:
            self.conv = nn.Conv2d(2, 3, 3)
        return self.conv(x)

class ByValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = None

    def forward(self, x):
        if self.gain is None:
            self.gain = Gain(float(x.abs().max()))
        return self.gain(x)
"""


@pytest.mark.parametrize("name", ["Copied", "Alike"])
def test_a_layer_that_is_made_alike_at_every_first_call_is_exported(name, export, write_module):
    write_module(f"import copy\n{LAYERS}")
    assert export(f"net.py:{name}", ["x:float32[N,2,H,8]"], "N=1:2:3 H=4:5:9").exporter == "dynamo"


@pytest.mark.parametrize(("name", "layer"), [("Drawn", "conv"), ("ByValue", "gain")])
def test_a_layer_that_another_first_call_makes_otherwise_is_refused(name, layer, export, write_module):
    write_module(f"import copy\n{LAYERS}")
    with pytest.raises(AccuracyError, match=f"forward keeps '{layer}' from its first call"):
        export(f"net.py:{name}", ["x:float32[N,2,H,8]"], "N=1:2:3 H=4:5:9")
