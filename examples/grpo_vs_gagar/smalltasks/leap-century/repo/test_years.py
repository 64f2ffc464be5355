from years import days, leap


def test_plain_years():
    assert leap(2024)
    assert not leap(2023)


def test_days():
    assert days(2023) == 365
