"""What a module computes in another thread is refused: recordings hold one thread."""

from __future__ import annotations

import pytest

from trtconv.core.errors import TrtconvError

MODULE = """
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

EARLIER, WORKERS = ThreadPoolExecutor(1), ThreadPool(1)
EARLIER.submit(int).result()

class Net(nn.Module):
    def forward(self, x):
        y = x * 2

        def limit():
            return y.clamp_(max=5e4)

        {call}
        return y
"""
CALLS = {
    "thread": "t = threading.Thread(target=limit); t.start(); t.join()",
    "timer": "t = threading.Timer(0.0, limit); t.start(); t.join()",
    "earlier pool": "EARLIER.submit(limit).result()",
    "earlier workers": "WORKERS.map(lambda i: y[:, i].clamp_(max=5e4), range(1))",
    "asyncio": "asyncio.run(asyncio.to_thread(limit))",
    "flag": "y = torch.where(EARLIER.submit(lambda: (x > 5e4).any()).result(), -y, y)",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_tensors_of_another_thread(write_module, export, call):
    path = write_module(MODULE.format(call=call))
    with pytest.raises(TrtconvError) as raised:
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    assert "in another thread" in "\n".join([raised.value.message, *raised.value.details])


def test_a_thread_without_tensors_is_no_obstacle(write_module, export):
    path = write_module(MODULE.format(call="t = threading.Thread(target=int); t.start(); t.join()"))
    assert export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9").model.exists()
