from buildorder import unique


def test_keeps_first_of_each_in_order():
    assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]


def test_key_decides_what_is_the_same():
    assert unique(["b", "A", "B", "a"], key=str.lower) == ["b", "A"]


def test_items_need_not_be_hashable():
    rows = [["x", 1], ["y", 2], ["x", 3]]
    assert unique(rows, key=lambda row: row[0]) == [["x", 1], ["y", 2]]


def test_takes_any_iterable():
    assert unique(iter("abca")) == ["a", "b", "c"]
    assert unique([]) == []
