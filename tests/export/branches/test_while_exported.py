"""Modules that ask whether they are being exported."""

import pytest
import torch
from torch import nn

from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.while_exported import answered, asking_line
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.reference import ReferenceSample

ASKING = """
import torch
from torch import nn

class Mask(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting() or torch.jit.is_tracing():
            return x + torch.ones(1, 3, 7)
        return x * 2

class Other(nn.Module):
    def forward(self, x):
        return x * (3 if torch.compiler.is_exporting() or torch.jit.is_tracing() else 2)

class Alike(nn.Module):
    def forward(self, x):
        return x + x if torch.compiler.is_exporting() else x * 2
"""
INPUT = parse_tensor("x:float32[N,3,W]")


@pytest.mark.parametrize("name", ["Mask", "Other"])
def test_own_code_that_asks_is_traced_as_in_a_run(export, write_module, name):
    write_module(ASKING)
    result = export(f"net.py:{name}", ["x:float32[N,3,W]"], "N=1:2:3 W=2:5:9")
    assert not any(n.startswith("dynamo") for n in result.notes)


@pytest.mark.parametrize(("name", "way"), [("Mask", "could not export"), ("Other", "differ")])
def test_the_path_of_a_run_is_exported_where_a_packages_own_is_another(
    export, write_module, tmp_path, monkeypatch, name, way
):
    package = tmp_path / "site-packages" / f"asking_{name}.py"
    package.parent.mkdir()
    package.write_text(ASKING)
    monkeypatch.syspath_prepend(str(package.parent))
    write_module(f"from asking_{name} import {name}\n")
    result = export(f"net.py:{name}", ["x:float32[N,3,W]"], "N=1:2:3 W=2:5:9")
    assert way in next(n for n in result.notes if n.startswith("dynamo:"))
    assert any(n.startswith("dynamo with the path of a plain run: equal") for n in result.notes)


@pytest.mark.slow
def test_what_the_user_wrote_for_exporters_serves_where_a_run_cannot_be_traced(export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting() or torch.jit.is_tracing():
            return x * 2
        return torch.from_numpy(x.numpy() * 2)
""")
    result = export("net.py:Net", ["x:float32[N,3,W]"], "N=1:2:3 W=2:5:9")
    assert any("with the path of an export: equal" in n for n in result.notes)


@pytest.mark.parametrize(("name", "line"), [("Mask", 7), ("Other", 13), ("Alike", None)])
def test_the_line_that_asks_is_told_where_it_matters(name, line, tmp_path):
    file = tmp_path / "net.py"
    file.write_text(ASKING)
    names: dict[str, type[nn.Module]] = {}
    exec(compile(ASKING, str(file), "exec"), names)
    runner = ModuleRunner(names[name](), [INPUT])
    inputs = sample_inputs([INPUT], SamplePoint("p", (("N", 2), ("W", 5))))
    sample = ReferenceSample(SamplePoint("p", (("N", 2), ("W", 5))), inputs, runner(inputs))
    assert asking_line(runner, sample) == ((str(file), line) if line else None)


def test_torch_itself_gets_the_real_answer():
    with answered(True) as lines:
        assert torch.jit.is_tracing()
        # Its scaled dot product asks too.
        torch.jit.trace(nn.MultiheadAttention(4, 2, batch_first=True).eval(), [torch.zeros(1, 3, 4)] * 3)
    assert len(lines) == 1
    assert not torch.jit.is_tracing()


def test_a_function_that_is_scripted_may_ask(export, write_module):
    write_module("""
@torch.jit.script_if_tracing
def raised(x):
    return x + 1 if torch.jit.is_tracing() else x * 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return raised(self.gru(x)[0])
""")
    result = export("net.py:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=2:5:9", exporter="torchscript")
    assert result.exporter == "torchscript"
