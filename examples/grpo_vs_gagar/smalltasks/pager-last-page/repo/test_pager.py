from pager import page, pages


def test_full_pages():
    assert pages(10, 5) == 2


def test_page():
    assert page([1, 2, 3], 2, 2) == [3]
