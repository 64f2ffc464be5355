from years import days, leap


def test_plain_years():
    assert leap(2024)
    assert not leap(2023)


def test_days():
    assert days(2023) == 365


def test_centuries():
    assert not leap(1900)
    assert days(2100) == 365


def test_every_400_years():
    assert leap(2000)
