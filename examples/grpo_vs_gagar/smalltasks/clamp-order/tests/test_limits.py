from limits import clamp, inside


def test_clamp_low():
    assert clamp(-1, 0, 10) == 0


def test_inside():
    assert inside(3, 0, 10)


def test_clamp_high():
    assert clamp(12, 0, 10) == 10
    assert clamp(-2, -9, -5) == -5


def test_clamp_inside():
    assert clamp(5, 0, 10) == 5
    assert clamp(10, 0, 10) == 10
