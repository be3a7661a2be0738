"""Each example runs at the sizes that its config allows, gives sane numbers, and is the same for the same seed."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.examples.catalogue import NAMES, ROOT, config_of, make, python_file, shared_module  # noqa: E402
from trtconv.core.tensors import require_ranges  # noqa: E402
from trtconv.core.tolerance import NO_LIMITS  # noqa: E402
from trtconv.export.module.outputs import flatten_outputs  # noqa: E402
from trtconv.frontend.assemble import input_specs, module_source, shape_space, tolerance  # noqa: E402
from trtconv.frontend.command_line import CommandLine  # noqa: E402
from trtconv.proof.points import sample_inputs, sample_points  # noqa: E402

LABELS = ("min", "interior-1", "corner-1")


def inputs_at(name: str, label: str, seed: int = 0) -> tuple[Any, ...]:
    config = config_of(name)
    specs = input_specs(config)
    space = shape_space(config)
    points = sample_points(space, specs, seed=seed)
    # Where min and opt are the same there is one point for both.
    point = next(p for p in points if p.label == label or (label == "min" and p.sizes == space.pick("min")))
    if config.model.sample:
        file, _, function = config.model.sample.partition(".py:")
        generator = torch.Generator().manual_seed(seed)
        return tuple(getattr(python_file(file), function)(point.sizes, generator))
    return tuple(torch.from_numpy(a) for a in sample_inputs(specs, point).values())


def outputs_of(module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    with torch.no_grad():
        return flatten_outputs(module(*inputs))


@pytest.mark.parametrize("name", NAMES)
def test_the_config_fits_the_module(name: str) -> None:
    config = config_of(name)
    specs = input_specs(config)
    source = module_source(config, None, CommandLine())
    assert (source.base / source.spec.partition(":")[0]).is_file()
    if source.sample:
        assert (source.base / source.sample.partition(":")[0]).is_file()
    assert [s.name for s in specs] == list(inspect.signature(shared_module(name).forward).parameters)
    require_ranges(specs, shape_space(config))
    # Held to the noise floor: a limit of its own would allow more.
    assert tolerance(config.check, None, None) in (None, NO_LIMITS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("label", LABELS)
def test_outputs_are_finite_and_neither_vanish_nor_explode(name: str, label: str) -> None:
    inputs = inputs_at(name, label)
    for output in outputs_of(shared_module(name), inputs).values():
        assert output.shape[0] == inputs[0].shape[0]
        assert torch.isfinite(output).all()
        assert 1e-3 < output.std() < 100.0


def test_the_interior_point_is_a_batch_of_images_that_are_not_square() -> None:
    for parameter in NAMES:
        shape = inputs_at(str(parameter.values[0]), "interior-1")[0].shape
        assert shape[0] >= 2
        assert shape[2] != shape[3]


@pytest.mark.parametrize("name", NAMES)
def test_the_items_of_a_batch_do_not_see_each_other(name: str) -> None:
    inputs = inputs_at(name, "interior-1")
    both = outputs_of(shared_module(name), inputs)
    alone = outputs_of(shared_module(name), tuple(x[1:2] for x in inputs))
    for key, output in both.items():
        torch.testing.assert_close(alone[key], output[1:2], rtol=1e-4, atol=1e-4 * max(1.0, float(output.std())))


@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_the_input(name: str) -> None:
    first = outputs_of(shared_module(name), inputs_at(name, "min"))
    second = outputs_of(shared_module(name), inputs_at(name, "min", seed=1))
    for key, output in first.items():
        assert (output - second[key]).abs().max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_weights_whatever_the_global_state(name: str) -> None:
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    first = shared_module(name).state_dict()
    second = make(name).state_dict()
    assert list(first) == list(second)
    assert all(torch.equal(first[key], second[key]) for key in first)
    torch.random.set_rng_state(state)
    if "seed" in inspect.signature(getattr(python_file_of(name), factory_of(name))).parameters:
        other = make(name, seed=1).state_dict()
        assert any(not torch.equal(first[key], other[key]) for key in first)


def python_file_of(name: str) -> Any:
    return python_file(config_of(name).model.module.partition(".py:")[0])


def factory_of(name: str) -> str:
    return config_of(name).model.module.partition(":")[2]


@pytest.mark.parametrize("name", NAMES)
def test_modules_come_in_eval_mode(name: str) -> None:
    assert not any(m.training for m in shared_module(name).modules())


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.py")), ids=lambda p: p.stem)
def test_examples_are_plain_torch(path: Any) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add(str(node.module).partition(".")[0])
    assert roots <= {"__future__", "importlib", "itertools", "pathlib", "torch"}


def test_the_readme_lists_every_config() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [p.name for p in ROOT.glob("*.toml") if f"`{p.name}`" not in text]
    assert not missing
