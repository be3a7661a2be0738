"""Weights into a plan, and TensorRT's ways of saying no."""

from types import SimpleNamespace

import numpy as np
import pytest

from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.admission import AdmittedEngine
from trtconv.backends.tensorrt.engine_fit import EngineFile
from trtconv.backends.tensorrt.plan_header import PlanHeader
from trtconv.backends.tensorrt.refit import refit_plan
from trtconv.core.errors import TrtconvError, UnsupportedError

OLD = Capabilities("tensorrt", "8.6.0", 8, True, True, False)


class Library:
    """A TensorRT of which one engine is known: its weights by name, and what it refuses."""

    def __init__(self, *names, refittable=True, missing=(), refuses=()):
        engine = SimpleNamespace(refittable=refittable, weights={}, serialize=lambda: repr(engine.weights).encode())

        class Refitter:
            def __init__(self, engine, logger):
                self.engine = engine

            def get_all_weights(self):
                return list(names)

            def set_named_weights(self, name, weights):
                self.engine.weights[name] = weights.array.tolist()
                return name not in refuses

            def get_missing_weights(self):
                return list(missing)

            def refit_cuda_engine(self):
                return "all" not in refuses

        self.Refitter, self.Weights = Refitter, lambda array: SimpleNamespace(array=array)
        plans = {b"plan": engine}
        self.Runtime = lambda logger: SimpleNamespace(deserialize_cuda_engine=plans.get)


@pytest.fixture(autouse=True)
def one_logger(monkeypatch):
    from contextlib import nullcontext

    from trtconv.backends.tensorrt import admission, refit
    from trtconv.backends.tensorrt.messages import Messages

    logger = SimpleNamespace(collect=lambda: nullcontext(Messages([("error", "TensorRT's own words")])))
    for module in (refit, admission):
        monkeypatch.setattr(module, "logger_of", lambda trt: logger)


def refitted(library, tmp_path, plan=b"plan", **weights):
    arrays = {n: np.asarray(v, np.float32) for n, v in weights.items()}
    file = EngineFile(tmp_path / "m.engine", plan, PlanHeader("tensorrt", (8, 6, 0, 0)), None)
    return refit_plan(library, OLD, AdmittedEngine(file), arrays)


def test_the_plan_with_its_new_weights(tmp_path):
    assert refitted(Library("a", "b"), tmp_path, a=[1, 2]) == b"{'a': [1.0, 2.0]}"


@pytest.mark.parametrize(
    ("library", "error", "message"),
    [
        (Library("a", refittable=False), UnsupportedError, "was not built to take new weights"),
        (Library("b"), UnsupportedError, "no place for 1 of the 1 new weights: 'a'"),
        (Library("a", missing=["b", "c"]), UnsupportedError, "wants 2 more weights: 'b', 'c'"),
        (Library("a", refuses=["a"]), TrtconvError, "does not take the new weight 'a'"),
        (Library("a", refuses=["all"]), TrtconvError, "cannot refit"),
    ],
)
def test_every_refusal_has_a_name(library, error, message, tmp_path):
    with pytest.raises(error, match=message):
        refitted(library, tmp_path, a=[1.0])


def test_a_plan_that_does_not_load(tmp_path):
    with pytest.raises(TrtconvError, match="refuses") as error:
        refitted(Library("a"), tmp_path, plan=b"cut", a=[1.0])
    assert error.value.details == ("TensorRT's own words",)
