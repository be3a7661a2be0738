"""`trtconv.sweep`, over a stand-in for trtconv whose jobs take milliseconds."""

import pytest

import trtconv
from tests.sweep.conftest import TARGETS, bench  # noqa: F401 - a fixture
from tests.sweep.fork_pool import ForkPool


@pytest.fixture
def fleet_of(bench, monkeypatch):  # noqa: F811
    monkeypatch.setattr("trtconv.sweep.sweep._ray_pool", lambda request: ForkPool())

    def run(models, **options):
        bench.write(models, targets=TARGETS[:1])
        return trtconv.sweep(bench.folder / "sweep.toml", output=bench.atlas, **options)

    return run


def test_a_fleet_tells_its_cells(fleet_of):
    fleet = fleet_of(["a", "b"])
    assert fleet
    assert (fleet.exit_code, fleet.red) == (0, ())
    assert repr(fleet) == "<trtconv.Fleet 2 amber>"
    assert [cell["state"] for cell in fleet.as_dict()["cells"]] == ["amber", "amber"]
    assert fleet.index.is_file()
    assert "<iframe" in fleet._repr_html_()
    fleet.raise_if_red()


def test_a_red_cell_is_a_verdict_and_raises_on_request(fleet_of):
    fleet = fleet_of(["good", "wrong"])
    assert not fleet
    assert (fleet.exit_code, [v.cell.model for v in fleet.red]) == (3, ["wrong"])
    with pytest.raises(trtconv.AccuracyError, match=r"1 red[\s\S]*wrong/own/tensorrt-rtx/fp32/none  check: accuracy"):
        fleet.raise_if_red()
    assert [v.cell.model for v in fleet_of(["good", "wrong"], only=["model=good"]).cells] == ["good"]


def test_a_wrong_file_is_one_error(tmp_path):
    (tmp_path / "sweep.toml").write_text("[sweep]\ntargts = []\n")
    with pytest.raises(trtconv.InvalidRequestError, match=r"unknown key 'sweep\.targts'\. Did you mean 'targets'"):
        trtconv.sweep(tmp_path / "sweep.toml", output=tmp_path / "atlas")


def test_the_package_of_that_name_is_there_too():
    import trtconv.sweep.engine.driver

    assert trtconv.sweep.engine.driver.SilentView is not None
    assert trtconv.sweep.run_sweep is not None
