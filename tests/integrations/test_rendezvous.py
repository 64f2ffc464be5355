"""Members of a group that end in concurrent calls: asyncio tasks and threads, lost, late and double ones."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.integrations.rendezvous import Rendezvous

LONG = 60.0  # no test waits for it


class Grading:
    """Gives each record its rank in the group, and remembers who was graded together."""

    def __init__(self):
        self.groups = []

    def __call__(self, records, group_id):
        self.groups.append((group_id, sorted(records)))
        return [sorted(records).index(record) for record in records]


async def take_part(meeting, group, size, record, **kwargs):
    with meeting.seat(group, size, **kwargs) as seat:
        await asyncio.sleep(0)
        return await seat.number_async(record)


def test_tasks_of_one_loop_meet_and_are_graded_once():
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)

    async def main():
        return await asyncio.gather(*[take_part(meeting, "g", 4, record) for record in (30, 10, 20, 0)])

    assert asyncio.run(main()) == [3, 1, 2, 0]
    assert [records for _, records in grading.groups] == [[0, 10, 20, 30]]
    assert grading.groups[0][0].startswith("g-")
    assert meeting.waiting == 0


def test_threads_meet():
    meeting = Rendezvous(Grading(), deadline_s=LONG)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(lambda r=r: meeting.seat(r // 10, 4).number(r)) for r in (0, 10, 1, 11, 2, 12, 3, 13)]
        assert [future.result() for future in futures] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert meeting.waiting == 0


def test_threads_and_tasks_meet_in_one_group():
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def main():
        return await asyncio.gather(
            take_part(meeting, "g", 2, 5), asyncio.to_thread(lambda: meeting.seat("g", 2).number(7))
        )

    assert asyncio.run(main()) == [0, 1]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=24), st.integers(1, 4))
def test_every_member_is_graded_with_size_others_of_its_own_group(names, size):
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)
    whole = [name for name in "abc" for _ in range(names.count(name) // size * size)]

    async def main():
        return await asyncio.gather(*[take_part(meeting, name, size, f"{name}{i}") for i, name in enumerate(whole)])

    numbers = asyncio.run(main())
    assert len(numbers) == len(whole)
    assert None not in numbers
    assert all(len(records) == size and len({r[0] for r in records}) == 1 for _, records in grading.groups)
    assert len({group_id for group_id, _ in grading.groups}) == len(grading.groups)
    assert sorted(r for _, records in grading.groups for r in records) == sorted(f"{n}{i}" for i, n in enumerate(whole))
    assert meeting.waiting == 0


def test_two_groups_of_one_name_are_two_groups():
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)

    async def main():
        return await asyncio.gather(*[take_part(meeting, "the same prompt", 2, record) for record in range(4)])

    assert asyncio.run(main()) == [0, 1, 0, 1]
    assert sorted(records for _, records in grading.groups) == [[0, 1], [2, 3]]


def test_a_member_that_raises_is_not_waited_for():
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def fails():
        with meeting.seat("g", 3):
            await asyncio.sleep(0)
            raise RuntimeError("the rollout broke")

    async def main():
        return await asyncio.gather(
            take_part(meeting, "g", 3, 1), fails(), take_part(meeting, "g", 3, 2), return_exceptions=True
        )

    first, error, second = asyncio.run(main())
    assert (first, second) == (0, 1)
    assert isinstance(error, RuntimeError)
    assert meeting.waiting == 0


def test_a_group_of_which_all_fail_leaves_nothing():
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)
    for _ in range(3):
        meeting.seat("g", 3).leave()
    assert meeting.waiting == 0
    assert grading.groups == []


def test_at_the_deadline_who_is_missing_is_left_out_and_gets_none_later():
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)
    seats = [meeting.seat("g", 3) for _ in range(3)]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(seat.number, record) for record, seat in enumerate(seats[:2])]
        while [seat.state for seat in seats] != ["here", "here", "at work"]:
            threading.Event().wait(0.005)
        meeting._expire(seats[2]._group)  # what the timer does
        assert [future.result() for future in waiting] == [0, 1]
    assert seats[2].number(3) is None
    assert [records for _, records in grading.groups] == [[0, 1]]


def test_who_takes_a_seat_only_after_the_deadline_is_left_out_and_opens_no_new_group():
    meeting = Rendezvous(Grading(), deadline_s=0.2)
    assert meeting.seat("g", 3).number(1) == 0  # the other two have not even started
    assert meeting.seat("g", 3).number(2) is None
    assert meeting.seat("g", 3).number(3) is None
    assert meeting.waiting == 0
    assert meeting._owed == {}
    seat = meeting.seat("g", 1)  # the next group of that name is a new one
    assert seat.number(4) == 0


def test_the_same_member_twice_is_left_out_the_second_time():
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def main():
        first = asyncio.create_task(take_part(meeting, "g", 2, 1, member="a"))
        await asyncio.sleep(0)
        again = await take_part(meeting, "g", 2, 9, member="a")
        other = await take_part(meeting, "g", 2, 2, member="b")
        return await first, again, other

    assert asyncio.run(main()) == (0, None, 1)


def test_a_seat_takes_one_record():
    meeting = Rendezvous(Grading(), deadline_s=LONG)
    seat = meeting.seat("g", 1)
    assert seat.number(1) == 0
    with pytest.raises(ValueError, match="hands in a second record"):
        seat.number(2)


def test_sizes_that_differ_are_refused():
    meeting = Rendezvous(Grading(), deadline_s=LONG)
    meeting.seat("g", 2)
    with pytest.raises(ValueError, match="'g' was opened with 2 members, not with 3"):
        meeting.seat("g", 3)
    with pytest.raises(ValueError, match="size must be 1 or more"):
        meeting.seat("h", 0)
    with pytest.raises(ValueError, match="deadlines must be above 0"):
        Rendezvous(Grading(), deadline_s=0)


def raises(records, group_id):
    raise RuntimeError("the judge broke")


@pytest.mark.parametrize("broken", [raises, lambda records, group_id: [1]], ids=["raises", "too few numbers"])
def test_the_fallback_is_used_when_grading_fails(broken):
    meeting = Rendezvous(broken, fallback=Grading(), deadline_s=LONG)
    seats = [meeting.seat("g", 2) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda pair: pair[0].number(pair[1]), zip(seats, (5, 4), strict=True))) == [1, 0]


def test_without_a_fallback_everyone_gets_none():
    assert Rendezvous(raises, deadline_s=LONG).seat("g", 1).number(1) is None


def test_grading_that_hangs_is_given_up():
    hang = threading.Event()
    meeting = Rendezvous(lambda r, g: hang.wait(), fallback=Grading(), deadline_s=LONG, grading_deadline_s=0.1)
    assert meeting.seat("g", 1).number(1) == 0
    hang.set()


def test_a_cancelled_waiter_does_not_take_the_others_with_it():
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def main():
        first = asyncio.create_task(take_part(meeting, "g", 2, 1))
        for _ in range(3):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return await take_part(meeting, "g", 2, 2)

    assert asyncio.run(main()) == 1  # the first one's record counts, although nobody waits for its number


def test_tasks_that_start_together_join_without_knowing_how_many_they_are():
    grading = Grading()
    meeting = Rendezvous(grading, deadline_s=LONG)

    async def one(name, record):
        with await meeting.join(name) as seat:
            return seat.group_size, await seat.number_async(record)

    async def main():
        one_by_one = [await one("a", 7), await one("a", 8)]
        together = await asyncio.gather(*[one(name, record) for record, name in enumerate("aabbb")])
        return one_by_one, together

    assert asyncio.run(main()) == ([(1, 0), (1, 0)], [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
    assert meeting.waiting == 0
    assert meeting._joining == {}


def test_members_that_do_not_start_together_are_told_of(caplog):
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def one(record, start):
        await asyncio.sleep(start)
        with await meeting.join("g") as seat:
            await asyncio.sleep(0.2 - start)
            return seat.group_size, await seat.number_async(record)

    async def main():
        return await asyncio.gather(one(1, 0), one(2, 0), one(3, 0.1))

    assert asyncio.run(main()) == [(2, 0), (2, 1), (1, 0)]
    assert caplog.messages == ["members of group 'g' do not start together: they are compared apart"]


def test_one_thread_watches_all_deadlines():
    meeting = Rendezvous(Grading(), deadline_s=0.5)
    before = threading.active_count()
    seats = [meeting.seat(number, 2) for number in range(50)]
    assert threading.active_count() - before <= 1
    assert seats[0].number(1) == 0  # at the deadline: the other never came
    while meeting._watched:
        threading.Event().wait(0.01)
    assert meeting.waiting == 0


def test_a_task_that_is_cancelled_while_it_joins_is_not_waited_for():
    meeting = Rendezvous(Grading(), deadline_s=LONG)

    async def one(record):
        with await meeting.join("g") as seat:
            return await seat.number_async(record)

    async def main():
        tasks = [asyncio.create_task(one(record)) for record in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    cancelled, *numbers = asyncio.run(main())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert numbers == [0, 1]
    assert meeting.waiting == 0


def test_nothing_of_a_group_is_kept():
    class Record:
        def __lt__(self, other):
            return id(self) < id(other)

    meeting = Rendezvous(lambda records, group_id: [0] * len(records), deadline_s=LONG)
    record = Record()
    gone = weakref.ref(record)
    meeting.seat("g", 1).number(record)
    del record
    for _ in range(200):  # the thread that handed out the numbers may still be ending
        gc.collect()
        if gone() is None:
            break
        threading.Event().wait(0.01)
    assert gone() is None
    assert (meeting._filling, meeting._at_work, meeting._names, meeting._owed) == ({}, {}, {}, {})
