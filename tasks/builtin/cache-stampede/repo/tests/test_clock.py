import pytest

from larder import ManualClock, call_key


def test_manual_clock_advances():
    clock = ManualClock(5)
    clock.advance(2.5)
    assert clock() == 7.5


def test_manual_clock_does_not_go_back():
    with pytest.raises(ValueError):
        ManualClock().advance(-1)


def test_call_key_ignores_keyword_order():
    assert call_key((1,), {"a": 1, "b": 2}) == call_key((1,), {"b": 2, "a": 1})
    assert call_key((1,), {}) != call_key((), {"a": 1})
