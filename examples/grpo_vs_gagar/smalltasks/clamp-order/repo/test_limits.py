from limits import clamp, inside


def test_clamp_low():
    assert clamp(-1, 0, 10) == 0


def test_inside():
    assert inside(3, 0, 10)
