from retry import delay, delays


def test_second_delay_is_longer():
    assert delay(3) > delay(1)


def test_count():
    assert len(delays(3)) == 3
