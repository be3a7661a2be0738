from trtconv.core.text.listing import list_first, list_names


def test_a_long_list_ends_with_the_number_of_the_others():
    assert list_first(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert list_first(["a", "b"], 2) == "a, b"
    assert list_first([], 2) == ""


def test_names_stand_in_quotes():
    assert list_names(["x", "y"], 1) == "'x' and 1 more"
