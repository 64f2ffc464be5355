from prices import reduced, total


def test_reduced():
    assert reduced(9, 4) == 5


def test_total():
    assert total([1, 2]) == 3


def test_never_below_zero():
    assert reduced(5, 8) == 0
    assert reduced(5, 5) == 0


def test_cents_stay():
    assert reduced(2.5, 1) == 1.5
