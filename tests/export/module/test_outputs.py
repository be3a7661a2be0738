"""What a module returns."""

import numpy as np
import pytest

from trtconv.core.errors import AccuracyError, InvalidRequestError
from trtconv.export.module.outputs import flatten_outputs, require_names, require_same_outputs
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceSample


def sample(label, *names):
    return ReferenceSample(SamplePoint(label, ()), {}, {n: np.zeros(1) for n in names})


def test_outputs_that_come_at_some_sizes_only_are_refused():
    require_same_outputs([sample("traced", "a", "b"), sample("min", "a", "b")])
    with pytest.raises(AccuracyError, match=r"returns 'a', 'b' at traced .* and 'a' at min"):
        require_same_outputs([sample("traced", "a", "b"), sample("min", "a")])


def test_a_number_among_the_outputs_comes_with_its_remedy():
    with pytest.raises(InvalidRequestError, match="'scale' is of type int") as caught:
        flatten_outputs({"scale": 3})
    assert "leave the number out, or return it as one" in caught.value.hint


@pytest.mark.parametrize("name", ["", "a\nb", "c\0", "\ud800", "__metadata__"])
def test_names_that_no_file_holds(name):
    with pytest.raises(InvalidRequestError) as caught:
        require_names(["good", name])
    assert repr(name) in caught.value.message
    assert "--output-names" in caught.value.hint
    require_names(["a b", "größe", "p.q_0"])
