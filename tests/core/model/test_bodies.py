from onnx import TensorProto, helper

from trtconv.core.model.bodies import values_read, walk_nodes


def if_node(nodes, output):
    body = helper.make_graph(nodes, "b", [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])
    return helper.make_node("If", ["flag"], ["y"], then_branch=body, else_branch=body)


def test_what_bodies_read_from_outside_is_read_by_the_node():
    inner = if_node([helper.make_node("Add", ["outer", "own"], ["sum"])], "sum")
    node = if_node([helper.make_node("Neg", ["first"], ["own"]), inner], "y")
    assert values_read(node) == ("flag", "first", "outer")


def test_a_branch_that_passes_a_value_on_reads_it():
    assert values_read(if_node([], "outer")) == ("flag", "outer")


def test_nodes_of_bodies_follow_their_node():
    inner = if_node([helper.make_node("Neg", ["x"], ["n"])], "n")
    node = if_node([helper.make_node("Abs", ["x"], ["a"]), inner], "a")
    assert [n.op_type for n in walk_nodes([node])] == ["If", *["Abs", "If", "Neg", "Neg"] * 2]
