from buildorder import unique


def test_keeps_first_of_each_in_order():
    assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]


def test_key_decides_what_is_the_same():
    assert unique(["b", "A", "B", "a"], key=str.lower) == ["b", "A"]


def test_items_need_not_be_hashable():
    rows = [["x", 1], ["y", 2], ["x", 3]]
    assert unique(rows, key=lambda row: row[0]) == [["x", 1], ["y", 2]]


def test_takes_any_iterable():
    assert unique(iter("abca")) == ["a", "b", "c"]
    assert unique([]) == []


class CountingKey:
    """A hashable value that counts comparisons."""

    comparisons = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        type(self).comparisons += 1
        return self.number == other.number


def test_key_is_called_once_for_each_item():
    asked = []

    def key(item):
        asked.append(item)
        return item % 100

    assert unique(iter(range(300)), key=key) == list(range(100))
    assert asked == list(range(300))


def test_comparisons_of_distinct_keys_are_linear():
    CountingKey.comparisons = 0
    assert len(unique(range(400), key=CountingKey)) == 400
    assert CountingKey.comparisons <= 4 * 400


def test_comparisons_of_items_without_key_are_linear():
    CountingKey.comparisons = 0
    items = [CountingKey(number % 200) for number in range(400)]
    assert unique(items) == items[:200]
    assert CountingKey.comparisons <= 4 * 400 + 200  # the assertion itself may compare 200 times


def test_first_item_wins_and_falsy_keys_count():
    rows = [("a", 0), ("b", None), ("c", 0), ("d", ""), ("e", None)]
    assert unique(rows, key=lambda row: row[1]) == [("a", 0), ("b", None), ("d", "")]


def test_input_is_left_alone():
    items = [1, 1, 2]
    assert unique(items) == [1, 2]
    assert items == [1, 1, 2]
