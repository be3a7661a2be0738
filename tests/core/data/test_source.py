"""Data of every form becomes the same samples; what does not fit is one error."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from trtconv.core.data.preprocess import parse_preprocess
from trtconv.core.data.samples import batches
from trtconv.core.data.source import DataSource, read_data
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor

IMAGES = (parse_tensor("images:float32[N,2,4,4]"),)
PAIR = (parse_tensor("a:float32[N,3]"), parse_tensor("ids:int64[N,2]"))
X = np.random.default_rng(0).normal(size=(6, 2, 4, 4)).astype(np.float32)
Y = np.arange(6)

FUNCTION = """
import numpy as np
X = np.random.default_rng(0).normal(size=(6, 2, 4, 4)).astype(np.float32)
def batches():
    yield X[:4], [0, 1, 2, 3]
    yield {"images": X[4:]}, np.array([4, 5])
def no_labels():
    yield X
def wrong():
    yield X, [1]
def raising():
    raise ValueError("no disk")
    yield
"""


def in_npy(folder):
    np.save(folder / "one.npy", X)
    np.save(folder / "labels.npy", Y)
    return str(folder)


def in_single_samples(folder):
    for index, image in enumerate(X):
        np.save(folder / f"{index}.npy", image)
    np.save(folder / "labels.npy", Y)
    return str(folder)


def in_npz(folder):
    np.savez(folder / "all.npz", images=X, labels=Y)
    return str(folder / "all.npz")


def in_safetensors(folder):
    save_file({"images": X, "labels": Y}, folder / "all.safetensors")
    return str(folder)


def in_function(folder):
    (folder / "data.py").write_text(FUNCTION)
    return f"{folder / 'data.py'}:batches"


@pytest.mark.parametrize("write", [in_npy, in_single_samples, in_npz, in_safetensors, in_function])
def test_every_form_gives_the_same_samples(tmp_path, write):
    samples = read_data(DataSource(write(tmp_path)), IMAGES)
    np.testing.assert_array_equal(np.stack([s.inputs["images"] for s in samples]), X)
    assert [int(s.label) for s in samples] == list(range(6))


def test_two_inputs_in_their_dtypes(tmp_path):
    np.savez(tmp_path / "all.npz", a=np.ones((3, 3)), ids=np.zeros((3, 2), np.int32))
    samples = read_data(DataSource(str(tmp_path)), PAIR)
    assert {n: a.dtype for n, a in samples[0].inputs.items()} == {"a": np.float32, "ids": np.int64}
    assert samples[0].label is None


def test_a_pickled_array_is_refused_and_not_run(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidRequestError, match="pickled objects"):
        read_data(DataSource(str(tmp_path)), IMAGES)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": X, "more": X}, "no array for the input 'images'"),
        ({"images": X, "labels": Y[:3]}, "6 samples and 3 labels"),
        ({"images": X[..., :3]}, "sample 0 is"),
    ],
)
def test_arrays_that_do_not_fit_are_one_error(tmp_path, arrays, message):
    np.savez(tmp_path / "all.npz", **arrays)
    with pytest.raises(InvalidRequestError, match=message):
        read_data(DataSource(str(tmp_path)), IMAGES)


@pytest.mark.parametrize(
    ("name", "message"), [("wrong", "6 samples and 1 labels"), ("raising", "no disk"), ("batchez", "Did you mean")]
)
def test_functions_that_do_not_fit_are_one_error(tmp_path, name, message):
    (tmp_path / "data.py").write_text(FUNCTION)
    with pytest.raises(InvalidRequestError, match=message):
        read_data(DataSource(f"{tmp_path / 'data.py'}:{name}"), IMAGES)


def test_an_empty_folder_and_a_missing_one_are_named(tmp_path):
    with pytest.raises(InvalidRequestError, match="holds no data"):
        read_data(DataSource(str(tmp_path)), IMAGES)
    with pytest.raises(InvalidRequestError, match="there is no data"):
        read_data(DataSource(str(tmp_path / "none")), IMAGES)


def test_images_by_the_preprocessing_that_is_stated(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        image.fromarray(pixels).save(tmp_path / kind / "a.png")
    specs = (parse_tensor("x:float32[N,3,8,8]"),)
    with pytest.raises(InvalidRequestError, match="nothing says how"):
        read_data(DataSource(str(tmp_path)), specs)
    samples = read_data(DataSource(str(tmp_path), "size=8,mean=0.5,std=0.25,order=BGR"), specs)
    expected = ((pixels[..., ::-1] / 255 - 0.5) / 0.25).transpose(2, 0, 1)
    np.testing.assert_allclose(samples[1].inputs["x"], expected, rtol=1e-5, atol=1e-6)
    assert [s.label for s in samples] == [0, 1]


@pytest.mark.parametrize(
    "text", ["sise=4", "mean=0.5", "size=a", "size=4,std=0", "size=4,mean=1/2", "size=4,layout=CHW", "size=0"]
)
def test_a_preprocessing_that_says_nothing_is_refused(text):
    with pytest.raises(InvalidRequestError):
        parse_preprocess(text)


@pytest.mark.parametrize(
    ("spec", "space", "expected"),
    [
        ("x:float32[N,2]", "N=1:2:4", [(4, 4), (3, 3)]),
        ("x:float32[3,2]", "", [(3, 3), (3, 3), (3, 1)]),
        ("x:float32[N,2]", "N=5:5:5", [(5, 5), (5, 2)]),
        ("x:float32[1,2]", "", [(1, 1)] * 7),
    ],
)
def test_batches_take_what_the_batch_axis_takes(tmp_path, spec, space, expected):
    np.save(tmp_path / "x.npy", np.arange(14, dtype=np.float32).reshape(7, 2))
    specs = (parse_tensor(spec),)
    samples = read_data(DataSource(str(tmp_path)), specs)
    runs = list(batches(samples, specs, parse_space([space])))
    assert [(r.inputs["x"].shape[0], r.count) for r in runs] == expected
    rows = np.concatenate([r.inputs["x"][: r.count] for r in runs])
    np.testing.assert_array_equal(rows, np.arange(14).reshape(7, 2))
