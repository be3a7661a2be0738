"""The short part of the fuzzing, the same at each run; `make fuzz MINUTES=10` is the long one."""

import tempfile
import warnings
from pathlib import Path

import pytest

hypothesis = pytest.importorskip("hypothesis")

from tests.fuzz.catalogue import SHORT, TARGETS, by_name  # noqa: E402
from tests.fuzz.findings import FINDINGS, read_finding  # noqa: E402
from tests.fuzz.target import Finding, Target, run  # noqa: E402

SETTINGS = hypothesis.settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    print_blob=False,
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", SHORT, ids=lambda t: t.name)
def test_hostile_input_ends_in_an_answer_or_one_error(target):
    warnings.simplefilter("ignore")

    @SETTINGS
    @hypothesis.given(target.inputs)
    def read(value):
        with tempfile.TemporaryDirectory() as folder:
            run(target, value, Path(folder))

    read()


@pytest.mark.parametrize("path", FINDINGS, ids=lambda p: p.name)
def test_what_fuzzing_found_stays_mended(path, tmp_path):
    name, value = read_finding(path)
    run(by_name(name), value, tmp_path)


def test_findings_are_findings(tmp_path):
    """The oracle sees an exception that is not a TrtconvError, and a reader that hangs."""

    def broken(value, folder):
        raise KeyError(value)

    with pytest.raises(KeyError):
        run(Target("broken", None, broken), "x", tmp_path)

    def accepting(value, folder):
        raise Finding("accepted")

    with pytest.raises(Finding):
        run(Target("accepting", None, accepting, (ValueError,)), "x", tmp_path)


def test_every_target_has_a_name_of_its_own():
    names = [t.name for t in TARGETS]
    assert len(set(names)) == len(names) >= 20
