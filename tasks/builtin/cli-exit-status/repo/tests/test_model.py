import pytest

from chores import ChoreList, ChoresError


def test_numbers_go_up():
    chores = ChoreList()
    chores.add("one")
    chores.add("two")
    chores.remove(1)
    assert chores.add("three").number == 3


def test_title_is_tidied():
    assert ChoreList().add("  mow \n the lawn ").title == "mow the lawn"
    with pytest.raises(ChoresError):
        ChoreList().add(" ")


def test_finish_and_take_done():
    chores = ChoreList()
    chores.add("one")
    chores.add("two")
    chores.finish(2)
    with pytest.raises(ChoresError, match="done already"):
        chores.finish(2)
    assert [chore.title for chore in chores.take_done()] == ["two"]
    assert len(chores) == 1
