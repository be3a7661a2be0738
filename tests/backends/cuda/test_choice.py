import sys
from types import ModuleType, SimpleNamespace

import pytest

from tests.backends.cuda.fake_pycuda import FakePycuda
from trtconv.backends import probe
from trtconv.backends.cuda import choice
from trtconv.backends.cuda.driver import CudaState, Gpu
from trtconv.core.errors import InvalidRequestError, MissingDependencyError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for name in ("pycuda", "pycuda.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def no_pycuda(monkeypatch):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)


@pytest.fixture
def pycuda(monkeypatch):
    for name, module in FakePycuda().modules().items():
        monkeypatch.setitem(sys.modules, name, module)


def torch_with(*, initialized):
    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: initialized)
    module = ModuleType("torch")
    module.cuda = cuda
    return module


def test_pycuda_where_it_is_installed(pycuda):
    assert choice.choose_cuda() == choice.CudaChoice("pycuda", "pycuda is installed")


def test_the_driver_where_it_is_not(no_pycuda):
    assert choice.choose_cuda() == choice.CudaChoice("driver", "pycuda is not installed")


def test_a_pycuda_that_does_not_load(monkeypatch):
    def refuse(name):
        raise ImportError("libcuda.so.1: cannot open shared object file\nmore")

    monkeypatch.setattr(choice, "find_spec", lambda name: object())
    monkeypatch.setattr(choice, "import_module", refuse)
    chosen = choice.choose_cuda()
    assert chosen.library == "driver"
    assert chosen.reason.endswith("does not load: libcuda.so.1: cannot open shared object file")
    monkeypatch.setenv(choice.VARIABLE, "pycuda")
    with pytest.raises(MissingDependencyError, match=r"TRTCONV_CUDA=pycuda, but pycuda .* does not load"):
        choice.choose_cuda()


def test_torch_only_once_it_has_started_cuda(pycuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(initialized=False))
    assert choice.choose_cuda().library == "pycuda"
    monkeypatch.setitem(sys.modules, "torch", torch_with(initialized=True))
    assert choice.choose_cuda().library == "torch"


@pytest.mark.parametrize("name", ["driver", "Driver ", "pycuda"])
def test_the_variable_forces_one(pycuda, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "torch", torch_with(initialized=True))
    monkeypatch.setenv(choice.VARIABLE, name)
    assert choice.choose_cuda().library == name.strip().lower()
    monkeypatch.setenv(choice.VARIABLE, "auto")
    assert choice.choose_cuda().library == "torch"


def test_what_cannot_be_forced(no_pycuda, monkeypatch):
    monkeypatch.setenv(choice.VARIABLE, "pycuda")
    with pytest.raises(MissingDependencyError, match="pycuda is not installed") as caught:
        choice.choose_cuda()
    assert caught.value.hint == "pip install pycuda"
    monkeypatch.setenv(choice.VARIABLE, "pycdua")
    with pytest.raises(InvalidRequestError, match=r"'pycdua'.*pycuda"):
        choice.choose_cuda()
    monkeypatch.setenv(choice.VARIABLE, "torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="torch has no CUDA here"):
        choice.choose_cuda()


def test_the_doctor_says_which_and_why(no_pycuda, monkeypatch):
    state = CudaState("13.0", (Gpu(0, "H200", "9.0", 1, 1, "00"),))
    assert vars(probe._cuda_library(state)) == {"library": "driver", "reason": "pycuda is not installed"}
    without = probe._cuda_library(CudaState("", (), "the driver sees no GPU"))
    assert vars(without) == {"library": "", "reason": "the driver sees no GPU"}
    monkeypatch.setenv(choice.VARIABLE, "cuda")
    wrong = probe._cuda_library(state)
    assert wrong.library == ""
    assert "names no CUDA library: 'cuda'" in wrong.reason
