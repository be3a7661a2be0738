import gc
import threading

import pytest

from trtconv.backends.cuda.scope import ContextScope, DeviceResource


class Log:
    """A context per thread, and in what order things happened."""

    def __init__(self):
        self.events, self.local = [], threading.local()

    def scope(self):
        return ContextScope(lambda: self._set(True, "push"), lambda: self._set(False, "pop"))

    def _set(self, current, word):
        assert getattr(self.local, "current", False) is not current, "pushed or popped twice"
        self.local.current = current
        self.events.append(word)

    def free(self, name="free"):
        assert self.local.current
        self.events.append(name)


@pytest.fixture
def log():
    return Log()


def test_blocks_nest_and_only_the_outermost_pushes(log):
    scope = log.scope()
    with scope, scope:
        with scope:
            assert scope.entered
        assert log.events == ["push"]
    assert log.events == ["push", "pop"]
    assert not scope.entered


def test_the_context_is_popped_after_an_error(log):
    scope = log.scope()
    with pytest.raises(KeyboardInterrupt), scope:
        raise KeyboardInterrupt
    assert log.events == ["push", "pop"]


def test_a_push_that_fails_leaves_nothing_behind():
    def refuse():
        raise RuntimeError("no context")

    scope = ContextScope(refuse, lambda: pytest.fail("popped what was never pushed"))
    for _ in range(2):
        with pytest.raises(RuntimeError), scope:
            pass
        assert not scope.entered


def test_outside_of_a_block_the_last_reference_frees_at_once(log):
    resource = DeviceResource(log.scope(), log.free)
    del resource
    assert log.events == ["push", "free", "pop"]


def test_inside_a_block_freeing_waits_for_its_end(log):
    """A CUDA graph may be captured inside, which freeing would invalidate."""
    scope = log.scope()
    resource = DeviceResource(scope, log.free)
    with scope:
        del resource
        log.events.append("work")
    assert log.events == ["push", "work", "free", "pop"]


def test_the_next_block_of_any_thread_frees_what_is_queued(log):
    scope = log.scope()
    scope._discarded.append(log.free)

    def work():
        with scope:
            log.events.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert log.events == ["push", "free", "work", "pop"]


def test_the_collector_may_free_in_the_middle_of_freeing(log):
    scope = log.scope()

    class Ring:
        def __init__(self, resource):
            self.resource, self.ring = resource, self

    Ring(DeviceResource(scope, lambda: log.free("second")))

    def first():
        log.free("first")
        gc.collect()

    resource = DeviceResource(scope, first)
    del resource
    assert log.events == ["push", "first", "second", "pop"]


def test_one_that_fails_keeps_none_of_the_others(log):
    scope = log.scope()

    def fail():
        raise RuntimeError("the context is gone")

    held = [DeviceResource(scope, fail), DeviceResource(scope, log.free)]
    with scope:
        held.clear()
    assert log.events == ["push", "free", "pop"]


def test_threads_do_not_see_each_other(log):
    scope, entered, leave = log.scope(), threading.Event(), threading.Event()

    def work():
        with scope:
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(5)
    assert not scope.entered
    with scope:
        pass
    leave.set()
    thread.join()
    assert sorted(log.events) == ["pop", "pop", "push", "push"]
