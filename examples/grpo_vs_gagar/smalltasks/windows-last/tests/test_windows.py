from windows import means, windows


def test_first_window():
    assert windows([1, 2, 3], 2)[0] == [1, 2]


def test_first_mean():
    assert means([1, 3, 5], 2)[0] == 2


def test_last_window():
    assert windows([1, 2, 3], 2) == [[1, 2], [2, 3]]
    assert means([4], 1) == [4]


def test_too_few_items():
    assert windows([1], 2) == []
