from retry import delay, delays


def test_second_delay_is_longer():
    assert delay(3) > delay(1)


def test_count():
    assert len(delays(3)) == 3


def test_delays_double():
    assert delays(4) == [1, 2, 4, 8]


def test_base():
    assert delay(2, base=3) == 12
