"""Loops whose number of steps is a size are told by the line at which a trace stops."""

import pytest

from trtconv.export.exporters.tracing.size_loops import unrolls_by_size

CODE = """def f(x):
    for t in range(
        x.shape[1]
    ):
        x = x + t
    while x.shape[1] > 3:
        x = x[:, 1:]
    if x.shape[1] == 4:
        x = x * 2
    return x
"""


@pytest.mark.parametrize(("line", "unrolls"), [(2, True), (3, True), (5, False), (6, True), (7, False), (8, False)])
def test_the_head_of_a_loop_unrolls(tmp_path, line, unrolls):
    path = tmp_path / "net.py"
    path.write_text(CODE)
    text = f'your code specialized it to be a constant (11).\n File "{path}", line {line}, in f'
    assert unrolls_by_size(ValueError(text)) == unrolls
    assert not unrolls_by_size(ValueError(text.replace("specialized", "took")))


def test_what_names_no_file_that_can_be_read_unrolls_nothing(tmp_path):
    assert not unrolls_by_size(None)
    assert not unrolls_by_size(ValueError(f'specialized it to be a constant\n File "{tmp_path}/none.py", line 2, in f'))
