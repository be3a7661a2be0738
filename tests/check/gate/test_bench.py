import pytest

from tests.check.test_room import folder  # noqa: F401 - a fixture
from tests.cli.documents import validated
from trtconv.check.gate.bench import bench_model, chosen_samples
from trtconv.core.errors import InvalidRequestError
from trtconv.frontend.documents import document


def test_an_onnx_file_is_measured_at_its_points(folder):  # noqa: F811
    report = bench_model(folder / "model.onnx", seconds=0.05)
    assert {e.point for e in report.latencies} == {"min", "opt", "max"}
    for entry in report.latencies:
        assert entry.host.runs >= 5
        assert 0 < entry.host.least <= entry.host.median <= entry.host.p99 <= entry.host.most
        assert entry.throughput == pytest.approx(entry.batch / entry.host.median)
    validated(document("bench", report.as_dict()), "bench")


def test_a_point_that_is_not_there_is_named(folder):  # noqa: F811
    with pytest.raises(InvalidRequestError, match="no point 'opd'"):
        chosen_samples(folder / "model.reference.safetensors", ["opd"])
