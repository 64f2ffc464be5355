"""What the docstrings of pager say beyond the issue's own tests."""

import pytest
from pager import page, pages


@pytest.mark.parametrize("size", [1, 2, 7, 100, 1000])
def test_last_page_has_the_last_item(size):
    for total in (1, 2, size, size + 1, 3 * size - 1, 3 * size + 1):
        items = list(range(total))
        assert page(items, pages(total, size), size)[-1] == total - 1
        assert page(items, pages(total, size) + 1, size) == []


def test_large_numbers():
    assert pages(10**17 + 1, 10) == 10**16 + 1


def test_number_of_pages_is_whole():
    assert isinstance(pages(11, 5), int)


def test_nothing_is_printed(capsys):
    pages(11, 5)
    assert capsys.readouterr() == ("", "")
