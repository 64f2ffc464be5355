"""What the docstrings and the issue of windows say beyond the issue's own tests."""

from windows import means, windows


def test_all_sizes():
    items = list(range(6))
    for size in range(1, 7):
        found = windows(items, size)
        assert len(found) == 6 - size + 1
        assert [window[0] for window in found] == list(range(6 - size + 1))
        assert {len(window) for window in found} == {size}


def test_nothing_fits():
    assert windows([], 1) == []
    assert windows([1, 2], 5) == []
    assert means([], 3) == []


def test_other_sequences():
    assert windows("abcd", 3) == ["abc", "bcd"]
    assert windows((1, 2, 3), 2) == [(1, 2), (2, 3)]


def test_windows_are_copies():
    items = [1, 2, 3]
    windows(items, 3)[0].append(4)
    assert items == [1, 2, 3]


def test_nothing_is_printed(capsys):
    means([1, 2, 3], 2)
    assert capsys.readouterr() == ("", "")
