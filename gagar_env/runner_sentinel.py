"""The test that has to fail. In a file of its own: pytest parses the whole of it to show the failure."""


def must_fail():
    """Fail, unless something makes failures into passes."""
    assert 1 == 2, "this check of the test harness has to fail"
