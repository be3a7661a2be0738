import pytest
from onnx import parser, shape_inference

from trtconv.core.model.inference import MOST_DIMS, infer_propagated


def model_of(inputs, body):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (int64[M] y) {{ {body} }}')


@pytest.fixture
def passes(monkeypatch):
    """The settings of each call of ONNX's inference."""
    calls, plain = [], shape_inference.infer_shapes

    def infer(model, **settings):
        calls.append(settings.get("data_prop", False))
        return plain(model, **settings)

    monkeypatch.setattr(shape_inference, "infer_shapes", infer)
    return calls


def test_a_huge_vector_is_not_propagated(passes):
    body = "a = Constant <value_int: int = 0>() n = Constant <value_int: int = 1000000000>() "
    infer_propagated(
        model_of("int64[1] x", body + "o = Constant <value_int: int = 1>() r = Range(a, n, o) y = Add(r, x)")
    )
    assert passes == [False]
    infer_propagated(model_of(f"int64[{MOST_DIMS + 1}] x", "y = Add(x, x)"))
    assert passes == [False, False]


def test_other_graphs_are_and_those_that_keep_their_sizes_are_read_once(passes):
    infer_propagated(model_of("int64[N] x", "z = Add(x, x) y = Neg(z)"))
    assert passes == [True]
    infer_propagated(model_of("int64[N] x, int64[1] n", "y = Reshape(x, n)"))
    assert passes == [True, False, True]
