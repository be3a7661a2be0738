"""Which weights an engine is given, and which graphs are not the same."""

import numpy as np
import pytest
from onnx import numpy_helper, parser

from trtconv.build.refit import changed_weights
from trtconv.core.errors import InvalidRequestError

TEXT = "h = Gemm<transB=1>(x, {w}, {b}) r = Relu(h) y = Gemm<transB=1, alpha={alpha}>(r, {v})"


def graph(seed=0, alpha="1.0", text=TEXT, **names):
    names = {"w": "w", "b": "b", "v": "v", **names}
    body = text.format(alpha=alpha, **names)
    result = parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float[N,4] x) => (float[N,4] y) {{ {body} }}'
    )
    rng = np.random.default_rng(seed)
    for name in dict.fromkeys((names["w"], names["b"], names["v"])):
        shape = (4,) if name == names["b"] else (4, 4)
        result.graph.initializer.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
    return result


def test_equal_graphs_change_nothing():
    assert changed_weights(graph(), graph()) == {}


def test_changed_tensors_go_by_the_old_names():
    new = graph(1, w="val_7")
    new.graph.initializer[1].CopyFrom(graph().graph.initializer[1])
    changed = changed_weights(graph(), new)
    assert sorted(changed) == ["v", "w"]
    np.testing.assert_array_equal(changed["w"], numpy_helper.to_array(new.graph.initializer[0]))


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (graph(alpha="2.0"), "an attribute has another value"),
        (graph(text=TEXT.replace("Relu", "Tanh")), "the other graph has Tanh"),
        (graph(text=TEXT.replace("r = Relu(h)", "q = Relu(h) r = Relu(q)")), "at Relu 'r'"),
        (graph(text=TEXT.replace("y = Gemm", "z = Gemm") + " y = Relu(z)"), "at Gemm 'y'"),
    ],
    ids=["attribute", "operator", "one more", "longer"],
)
def test_another_graph_is_refused_at_its_first_node(new, message):
    with pytest.raises(InvalidRequestError, match=message):
        changed_weights(graph(), new)


def test_weights_that_were_one_and_are_two():
    with pytest.raises(InvalidRequestError, match="is two now"):
        changed_weights(graph(v="w"), graph())
    assert sorted(changed_weights(graph(), graph(1, v="w"))) == ["b", "v", "w"]


def test_another_shape_and_a_constant_that_is_no_float():
    wide = graph()
    wide.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((4, 5), np.float32), "w"))
    with pytest.raises(InvalidRequestError, match="'w' has another shape"):
        changed_weights(graph(), wide)
    text = "s = Reshape(x, shape) y = Identity(s)"
    models = []
    for sizes in ([-1, 4], [-1, 2]):
        model = graph(text=text)
        model.graph.initializer.append(numpy_helper.from_array(np.array(sizes), "shape"))
        models.append(model)
    with pytest.raises(InvalidRequestError, match="'shape', which is no float"):
        changed_weights(*models)
