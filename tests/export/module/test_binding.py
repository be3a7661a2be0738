"""How named inputs become arguments of forward, and how what it returns gets names."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from trtconv.core.errors import InvalidRequestError
from trtconv.core.tensors import parse_tensor
from trtconv.export.module.binding import bind_inputs
from trtconv.export.module.outputs import distinct_from_inputs, flatten_outputs, renaming_notes
from trtconv.export.module.runner import ModuleRunner


@dataclass
class Batch:
    image: Any
    mask: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


def plain(x: Any, mask: Any = None, *, scale: Any = 1) -> Any: ...
def of_batch(batch: Batch) -> Any: ...
def of_dict(batch: dict[str, Any], levels: list[Any]) -> Any: ...
def of_tuple(levels: tuple[Any, Any]) -> Any: ...
def of_pair(pair: Pair) -> Any: ...
def variadic(*tensors: Any) -> Any: ...
def open_ended(x: Any, **more: Any) -> Any: ...


@pytest.mark.parametrize(
    ("forward", "names", "positional", "keywords"),
    [
        (plain, ["x"], [], {"x": 0}),
        (plain, ["mask", "x"], [], {"mask": 0, "x": 1}),
        (plain, ["x", "scale"], [], {"x": 0, "scale": 1}),
        (of_batch, ["batch.image", "batch.mask"], [], {"batch": Batch(0, 1)}),
        (of_batch, ["batch.image"], [], {"batch": Batch(0)}),
        (of_dict, ["batch.a", "levels.1", "levels.0"], [], {"batch": {"a": 0}, "levels": [2, 1]}),
        (of_tuple, ["levels.0", "levels.1"], [], {"levels": (0, 1)}),
        (of_pair, ["pair.first", "pair.second"], [], {"pair": Pair(0, 1)}),
        (variadic, ["a", "b"], [0, 1], {}),
        (open_ended, ["x", "y"], [], {"x": 0, "y": 1}),
        (plain, ["images"], [], {"x": 0}),
        (plain, ["mask", "images"], [], {"mask": 0, "x": 1}),
        (of_pair, ["scores"], [], {"pair": 0}),
    ],
)
def test_binding(forward, names, positional, keywords):
    assert bind_inputs(forward, names).arguments(list(range(len(names)))) == (positional, keywords)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["x", "maks"], "takes no input 'maks'. Did you mean 'mask'?"),
        (["images", "boxes"], "takes no input 'images'"),
        (["images.left"], "takes no input 'images'"),
        (["mask"], "input 'x' has no --input"),
        (["x", "x"], "given twice"),
        (["x", "x.a"], "as a whole and in parts"),
    ],
)
def test_inputs_that_do_not_fit(names, words):
    with pytest.raises(InvalidRequestError) as caught:
        bind_inputs(plain, names)
    assert words in caught.value.message


def test_a_parameter_that_the_user_names_has_to_be_one():
    """By position it would go to another parameter, and the user would not hear of the slip."""
    assert bind_inputs(plain, ["y"]).by_position == {"y": "x"}
    with pytest.raises(InvalidRequestError) as caught:
        bind_inputs(plain, ["y"], claimed={"y"})
    assert "takes no input 'y'" in caught.value.message
    with pytest.raises(InvalidRequestError):
        ModuleRunner(torch.nn.ReLU(), [parse_tensor("y=images:float32[2]")])
    runner = ModuleRunner(torch.nn.ReLU(), [parse_tensor("input=images:float32[2]")])
    assert runner({"images": np.float32([-1, 1])})["output"].tolist() == [0, 1]


T = torch.zeros(2)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (T, ["output"]),
        ((T, T), ["output_0", "output_1"]),
        ([T, None, (T, T)], ["output_0", "output_2_0", "output_2_1"]),
        ({"boxes": T, "aux": {"mask": T, "levels": [T, T]}}, ["boxes", "aux.mask", "aux.levels_0", "aux.levels_1"]),
        (Batch(T, None), ["image"]),
        (Pair(T, T), ["first", "second"]),
        ({"x.y": T, "x": {"y": T}}, ["x.y", "x.y_2"]),
        ({"z_0": T, "z": [T, T]}, ["z_0", "z_0_2", "z_1"]),
        ({1: T, "1": T, "1_2": T}, ["1", "1_3", "1_2"]),
    ],
)
def test_output_names(value, names):
    assert list(flatten_outputs(value)) == names


def test_outputs_that_are_no_tensors():
    with pytest.raises(InvalidRequestError, match="'output_1' is of type int"):
        flatten_outputs((T, 3))
    with pytest.raises(InvalidRequestError, match="returns no tensor"):
        flatten_outputs(None)


def test_an_output_named_as_an_input_is_renamed():
    outputs = {"sample": 1, "sample_out": 2, "mean": 3}
    renamed = distinct_from_inputs(outputs, ("sample", "timestep"))
    assert renamed == {"sample_out_2": 1, "sample_out": 2, "mean": 3}
    assert distinct_from_inputs({"y": 1}, ("x",)) == {"y": 1}
    assert renaming_notes(list(outputs), list(renamed), ["sample", "timestep"]) == [
        "the output 'sample' is called 'sample_out_2': an input has its name"
    ]
    assert renaming_notes(["mean_out"], ["mean_out"], ["mean"]) == []


def test_leading_inputs_by_position_for_hooks_that_take_nothing_else():
    assert bind_inputs(plain, ["mask", "x"], leading=True).arguments([0, 1]) == ([1], {"mask": 0})
    module = torch.nn.Sequential(torch.nn.ReLU())
    module.register_forward_hook(lambda m, inputs, output: output + inputs[0])
    runner = ModuleRunner(module)
    x = np.array([-1.0, 2.0], np.float32)
    assert next(iter(runner({"input": x}).values())).tolist() == [-1.0, 4.0]
    module.register_forward_hook(lambda m, inputs, named, output: output * named.get("none", 2), with_kwargs=True)
    assert next(iter(ModuleRunner(module)({"input": x}).values())).tolist() == [-2.0, 8.0]


def test_a_decorator_that_takes_the_inputs_by_their_place_gets_them_so():
    def sized(function):
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs), args[1].shape[1], sorted(kwargs)

        return inner

    class Sized(torch.nn.Module):
        @sized
        def forward(self, x: Any, mask: Any = None) -> Any:
            return x

    module = Sized()
    positional, keywords = bind_inputs(module.forward, ["x", "mask"]).arguments([torch.ones(2, 5), torch.ones(2)])
    assert module(*positional, **keywords)[1:] == (5, ["mask"])
