def leap(year):
    """Whether February has 29 days."""
    return year % 4 == 0


def days(year):
    """Days of a year."""
    return 366 if leap(year) else 365
