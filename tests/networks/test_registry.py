"""The registry can be read without its packages, and asks for nothing that would replace torch."""

import json
import subprocess
import sys

import pytest

from networks.install import remove_unwanted, site_of
from networks.network import Network
from networks.page import write_page
from networks.quick import QUICK
from networks.registry import all_networks, package_names, requirements
from networks.run import lay_over, read_outcomes, watch
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor


def test_every_entry_can_be_read():
    assert len(all_networks()) >= 250
    for name, network in all_networks().items():
        space = parse_space([network.space])
        names = {d for text in network.inputs for d in parse_tensor(text).names()}
        assert names == set(space), name


def test_the_quick_part_is_of_the_registry():
    assert not QUICK - set(all_networks())
    assert 10 <= len(QUICK) <= 20


@pytest.mark.parametrize("package", package_names())
def test_nothing_brings_another_torch(package):
    plain = {r.split("=")[0].split("<")[0].strip() for r in requirements(package)}
    assert not plain & {"torch", "onnxruntime", "numpy", "tensorrt"}
    assert any("==" in r for r in requirements(package)), "the package itself is pinned"


def test_what_breaks_others_lies_apart(tmp_path):
    site = tmp_path / "site-packages"
    folders = {p: site_of(p, site) for p in package_names()}
    assert folders["torchaudio"] == tmp_path / "torchaudio" / "site-packages"
    assert {f for p, f in folders.items() if p != "torchaudio"} == {site}


def test_a_library_that_does_not_load_is_removed(tmp_path):
    folder = tmp_path / "torchaudio" / "lib"
    folder.mkdir(parents=True)
    for name in ("_torchaudio.abi3.so", "__init__.py"):
        (folder / name).touch()
    remove_unwanted("torchaudio", tmp_path)
    remove_unwanted("timm", tmp_path)
    assert [f.name for f in folder.iterdir()] == ["__init__.py"]


def outcome(name, status="equal", **more):
    return {"network": name, "status": status, "message": "", "seconds": {"export": 2.0}, **more}


def test_outcomes_are_laid_over_the_committed_ones(tmp_path):
    record = tmp_path / "results.jsonl"
    first, second, third = list(all_networks())[:3]
    record.write_text(
        json.dumps(outcome(third))
        + "\n"
        + json.dumps(outcome(first, "refused"))
        + "\n"
        + json.dumps(outcome("gone/away"))
        + '\n{"network": "cut o'
    )
    merged = lay_over({first: outcome(first), second: outcome(second)}, record, list(all_networks()))
    assert [(n, o["status"]) for n, o in merged.items()] == [(first, "equal"), (second, "equal"), (third, "equal")]
    assert read_outcomes(record) == merged


def test_the_page(tmp_path):
    first, second, third = list(all_networks())[:3]
    outcomes = {
        first: outcome(first, idle_outputs=["output"], rewrites={"gelu": 2}, opset=20, exporter="dynamo", rtx="yes")
        | {"own_flips": 2},
        second: outcome(second, "refused") | {"message": "no | way"},
        third: outcome(third, "unavailable"),
    }
    write_page(outcomes, tmp_path / "networks.md")
    text = (tmp_path / "networks.md").read_text()
    assert f"3 of {len(all_networks())} registered networks were run: 1 equal, 1 refused, 1 unavailable." in text
    assert "1 of the 2 that could be made are converted and equal" in text
    assert f"| {second} | refused | no / way |" in text
    assert "equal (proves nothing: output) (2 rows as the module gives them itself in another run) | 2 | 2 |" in text
    assert "dynamo, 20 |" in text
    assert "gelu 2 | yes |" in text


@pytest.mark.parametrize(
    ("code", "seconds", "mib", "reason"),
    [
        ("import time; time.sleep(60)", 0.3, 4096, "not finished after 0.3 s"),
        ("import time; x = bytearray(200 << 20); time.sleep(60)", 60, 100, "over 100 MiB of memory"),
        ("pass", 60, 4096, ""),
    ],
)
def test_a_process_over_a_limit_is_stopped(code, seconds, mib, reason):
    child = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    assert watch(child, seconds, mib)[0] == reason
    assert child.poll() is not None


def test_an_entry_has_defaults():
    network = Network("a", lambda: None)
    assert parse_tensor(network.inputs[0]).names()
