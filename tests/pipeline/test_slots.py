"""Places that are waited for in turn, and calls of graders that can be ended."""

import threading

import pytest
from pipelines import Crowd, First, meet, wait_for, wait_until

from gagar_env.envs.slots import Slots
from gagar_env.errors import GradingError
from gagar_env.grading_calls import GradingCalls


def never():
    return False


def test_no_more_than_there_are(request):
    slots, crowd, meeting = Slots(3), Crowd(), threading.Barrier(3, timeout=60)

    def work():
        with slots.taken(never) as mine, crowd:
            assert mine
            meet(meeting)  # three are in at one time, again and again

    threads = [threading.Thread(target=work) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert crowd.most == 3


def test_who_has_waited_longest_is_next():
    slots, order = Slots(1), []

    def work(number):
        with slots.taken(never):
            order.append(number)

    with slots.taken(never):
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            wait_until(lambda: len(slots._waiting) == len(threads))
    for thread in threads:
        thread.join()
    assert order == list(range(5))


def test_who_gives_up_takes_no_place_and_lets_the_next_one_go():
    slots, gone, got = Slots(1), threading.Event(), []

    def give_up():
        with slots.taken(gone.is_set) as mine:
            got.append(mine)

    with slots.taken(never):
        thread = threading.Thread(target=give_up)
        thread.start()
        wait_until(lambda: slots._waiting)
        gone.set()
        slots.wake()
        thread.join()
    assert got == [False]
    with slots.taken(never) as mine:
        assert mine
    with slots.taken(lambda: True) as mine:
        assert not mine


def test_an_interrupted_wait_leaves_no_ticket():
    slots = Slots(1)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), slots.taken(interrupted):
        pass
    with slots.taken(never) as mine:
        assert mine


@pytest.mark.parametrize("count", [0, -1])
def test_none_at_all_is_refused(count):
    with pytest.raises(ValueError, match="1 or more"):
        Slots(count)


class Place:
    """Stands for a workspace, where what is in it does not matter."""

    passing = ()
    candidates = {}


def test_a_call_gives_what_the_grader_gives_and_raises_what_it_raises():
    calls = GradingCalls(First())
    assert calls.name == "first"
    assert calls.grade(Place()).grader == "first"
    with pytest.raises(AttributeError):
        calls.grade(None)


@pytest.mark.parametrize("how", ["cancel", "stop"])
def test_a_call_that_nobody_waits_for_ends_at_once(how):
    asked, hold, told, faults = threading.Event(), threading.Event(), [], []
    grader = First(lambda workspace: (asked.set(), hold.wait(60)))
    grader.cancel = told.append
    calls, place = GradingCalls(grader), Place()

    def ask():
        with pytest.raises(GradingError, match="nobody waits"):
            calls.grade(place)
        faults.append("stopped")

    thread = threading.Thread(target=ask)
    thread.start()
    wait_for(asked)
    calls.cancel(place) if how == "cancel" else calls.stop()
    thread.join()
    assert told == [place]
    assert faults == ["stopped"]
    hold.set()
    if how == "stop":
        with pytest.raises(GradingError):
            calls.grade(Place())
    else:
        assert calls.grade(Place()).grader == "first"
