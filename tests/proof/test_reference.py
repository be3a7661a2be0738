import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.noise.noise_floor import noise_floors
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, read_reference_info, read_samples, write_reference


def make(tmp_path):
    space, spec = parse_space(["N=1:2:4"]), parse_tensor("x:float32[N,3]")
    points = sample_points(space, [spec])
    samples = []
    for point in points:
        inputs = sample_inputs([spec], point)
        samples.append(ReferenceSample(point, inputs, {"y": inputs["x"] * 2, "n": np.array(3)}))
    values = [s.outputs for s in samples]
    floors, _ = noise_floors(
        values, [{"y": np.abs(np.nan_to_num(v["y"])) * 1e-7} for v in values], [True] * len(values)
    )
    samples = [replace(s, floors=f) for s, f in zip(samples, floors, strict=True)]
    path = tmp_path / "m.reference.safetensors"
    write_reference(path, ReferenceInfo(points, (spec,), ("y", "n"), space, "net.py:make"), samples)
    return path, samples


def test_what_was_written_reads_back(tmp_path):
    path, samples = make(tmp_path)
    info = read_reference_info(path)
    assert info.outputs == ("y", "n")
    assert str(info.space) == "N=1:2:4"
    back = list(read_samples(path))
    assert [s.point for s in back] == [s.point for s in samples]
    for one, two in zip(back, samples, strict=True):
        np.testing.assert_array_equal(one.inputs["x"], two.inputs["x"])
        np.testing.assert_array_equal(one.outputs["y"], two.outputs["y"])
        for name, floor in two.floors.items():
            np.testing.assert_array_equal(one.floors[name].error, floor.error)
            np.testing.assert_array_equal(one.floors[name].scale, floor.scale)
            np.testing.assert_array_equal(one.floors[name].exact, floor.exact)
        assert one.outputs["n"].shape == ()


@pytest.mark.parametrize("content", [b"", b"nonsense", b'\x10\0\0\0\0\0\0\0{"__metadata__":{}}'])
def test_another_file_is_no_reference(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(InvalidRequestError, match="is not a reference file"):
        read_reference_info(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, _: header.pop("points"),
        lambda header, _: header.update(points=3),
        lambda header, _: header["points"][0].update(dims={"N": "x"}),
        lambda header, _: header.update(inputs=None),
        lambda header, _: header.update(space="N="),
        lambda header, _: header.update(chaotic=[["y"]]),
        lambda _, tensors: tensors.update({"p0/error/y": np.full((1, 1), np.nan, np.float32)}),
        lambda _, tensors: tensors.update({"p0/error/y": np.full((1, 1), -1, np.float32)}),
        lambda _, tensors: tensors.update({"p0/error/y": np.full((7, 1), 1, np.float32)}),
        lambda _, tensors: tensors.pop("p0/scale/y"),
        lambda _, tensors: tensors.pop("p1/input/x"),
    ],
)
def test_a_damaged_reference_is_one_error(tmp_path, change):
    path, _ = make(tmp_path)
    with safe_open(path, framework="numpy") as stream:
        header, tensors = json.loads(stream.metadata()["trtconv"]), {n: stream.get_tensor(n) for n in stream.keys()}  # noqa: SIM118
    change(header, tensors)
    save_file(tensors, path, metadata={"trtconv": json.dumps(header)})
    with pytest.raises(InvalidRequestError, match="is damaged"):
        list(read_samples(path))
