from pager import page, pages


def test_full_pages():
    assert pages(10, 5) == 2


def test_page():
    assert page([1, 2, 3], 2, 2) == [3]


def test_last_page_is_not_full():
    assert pages(11, 5) == 3
    assert pages(1, 5) == 1


def test_no_items():
    assert pages(0, 5) == 0
