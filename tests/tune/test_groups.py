import pytest

from trtconv.core.model.provenance import Origin
from trtconv.tune.groups import group_by_module


def test_nodes_of_a_module_are_one_group_and_functions_go_by_their_line():
    nodes = [("n1", Origin("body.0")), ("n2", Origin("", "net.py:7")), ("n3", Origin("body.0")), ("n4", Origin())]
    assert [(g.name, g.nodes) for g in group_by_module(nodes)] == [
        ("body.0", ("n1", "n3")),
        ("net.py:7", ("n2",)),
        ("n4", ("n4",)),
    ]


@pytest.mark.parametrize(("most", "expected"), [(6, 6), (5, 2), (2, 2), (1, 2)])
def test_too_many_groups_are_joined_by_their_outer_modules(most, expected):
    nodes = [(f"n{i}{j}", Origin(f"stage{i}.{j}")) for i in range(2) for j in range(3)]
    assert len(group_by_module(nodes, most)) == expected
