import threading

import numpy as np
import pytest

from tests.backends import fake_tensorrt
from trtconv.backends.cuda.context import check
from trtconv.backends.runtime.session import EngineSession
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError


@pytest.fixture
def engine():
    return fake_tensorrt.Engine()


@pytest.fixture
def session(engine):
    declared = {"same": parse_dtype("int64"), "y": parse_dtype("float32")}
    return EngineSession(fake_tensorrt, (object(), engine), fake_tensorrt.HostMemory(), "fake 8.6", declared)


def sample(rows=3):
    x = np.random.default_rng(rows).standard_normal((rows, 2)).astype(np.float32)
    return {"x": x, "ids": np.arange(rows, dtype=np.int64)}


def test_values_shapes_and_dtypes(session):
    inputs = sample()
    actual = session(inputs)
    np.testing.assert_array_equal(actual["y"], 2 * inputs["x"])
    np.testing.assert_array_equal(actual["n"], inputs["x"][inputs["x"] > 0])
    np.testing.assert_array_equal(actual["same"], inputs["ids"])
    assert actual["same"].dtype == np.int64, "the model says int64, whatever the engine computes with"


def test_names_as_keywords_and_left_over_names(session):
    assert set(session(**sample(), other=1)) == {"y", "same", "n"}


def test_the_smallest_profile_that_fits_is_taken(session, engine):
    session(sample(3))
    assert engine.contexts[0].profile == 0
    session(sample(30))
    assert engine.contexts[0].profile == 1
    session(sample(8))
    assert engine.contexts[0].profile == 1
    session(sample(2))
    assert engine.contexts[0].profile == 0


def test_the_profile_tuned_for_exactly_these_shapes_wins():
    from trtconv.backends.tensorrt.engine_io import choose_profile

    wide, narrow = {"x": ((1,), (3,), (100,))}, {"x": ((1,), (4,), (8,))}
    assert choose_profile((wide, narrow), {"x": (3,)}) == 0
    assert choose_profile((wide, narrow), {"x": (5,)}) == 1


def test_shapes_outside_every_profile(session):
    with pytest.raises(InvalidRequestError) as caught:
        session(sample(65))
    assert caught.value.details == (
        "profile 0: dim 0 of 'x' is 65, it takes 1 to 4",
        "profile 1: dim 0 of 'x' is 65, it takes 1 to 64",
    )
    with pytest.raises(InvalidRequestError) as caught:
        session(x=np.zeros((2, 2, 2), np.float32), ids=np.zeros(2, np.int32))
    assert "has 3 dims" in caught.value.details[0]


def test_a_second_call_with_the_same_shapes_sets_nothing_again(session, engine):
    session(sample())
    before = engine.contexts[0].calls.count("set_input_shape")
    session(sample())
    assert engine.contexts[0].calls.count("set_input_shape") == before
    assert engine.contexts[0].calls.count("execute") == 2


def test_inputs_are_converted_or_refused(session):
    good = sample()
    transposed = np.asfortranarray(good["x"])
    np.testing.assert_array_equal(session(x=transposed, ids=good["ids"])["y"], 2 * good["x"])
    np.testing.assert_array_equal(session(x=good["x"].astype(np.float64), ids=good["ids"])["y"], 2 * good["x"])
    with pytest.raises(InvalidRequestError, match="is int64, the engine takes float32"):
        session(x=good["ids"].reshape(-1, 1).repeat(2, 1), ids=good["ids"])
    with pytest.raises(InvalidRequestError, match="outside int32"):
        session(x=good["x"], ids=good["ids"] + 2**31)
    with pytest.raises(InvalidRequestError, match=r"'ids' is missing; what is 'idz'"):
        session(x=good["x"], idz=good["ids"])


def test_no_room_for_an_output_whose_size_depends_on_data(session):
    session(sample())
    session._memory.limit = 8
    with pytest.raises(TrtconvError, match="out of memory"):
        session(x=np.ones((4, 2), np.float32), ids=np.arange(4))
    session._memory.limit = 1 << 20
    assert session(x=np.ones((4, 2), np.float32), ids=np.arange(4))["n"].shape == (8,)


def test_one_context_per_thread(session, engine):
    results = {}

    def work(rows):
        for _ in range(50):
            inputs = sample(rows)
            results[rows] = bool((session(inputs)["y"] == 2 * inputs["x"]).all())

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (1, 2, 3, 60)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == dict.fromkeys((1, 2, 3, 60), True)
    assert len(engine.contexts) == 4


def test_a_cuda_graph_that_cannot_be_captured(session):
    """Sizes that depend on data: the graph is left out, and `prepare` says so."""
    session.cuda_graph = True
    for _ in range(3):
        assert set(session(sample())) == {"y", "same", "n"}
    with pytest.raises(UnsupportedError, match="a CUDA graph cannot hold this engine"):
        session.prepare(sample(), cuda_graph=True)


def test_no_context(session, engine):
    engine.refuse = True
    with pytest.raises(TrtconvError, match="gives no execution context"):
        session(sample())


def test_a_closed_session(session):
    session(sample())
    session.close()
    with pytest.raises(InvalidRequestError, match="is closed"):
        session(sample())


def test_a_driver_without_memory_says_so():
    class Driver:
        def cuGetErrorName(self, code, text):
            return 0

    with pytest.raises(TrtconvError, match="context: the GPU is out of memory"):
        check(Driver(), "making the CUDA context", 2)
    with pytest.raises(TrtconvError, match="context failed: 700"):
        check(Driver(), "making the CUDA context", 700)
