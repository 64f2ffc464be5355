"""What a scheduler decides, one rule at a time."""

import pytest

from gagar_env.scheduling import Attempt, Bounds, Cut, Fail, Grade, Mask, Plain, Scheduler, Start


def made(places=(("a", "node-a", 4), ("b", "node-b", 4)), **bounds):
    scheduler = Scheduler(Bounds(**{"group_size": 2, **bounds}))
    scheduler.begin(0.0)
    for name, node, slots in places:
        scheduler.place_up(name, node, slots=slots)
    return scheduler


def starts(decisions):
    return [(d.attempt.job, d.attempt.member, d.place) for d in decisions if isinstance(d, Start)]


def test_members_of_a_group_go_where_its_task_is_prepared_and_groups_spread():
    scheduler = made(places=[("a", "node-a", 8), ("b", "node-b", 8)])
    scheduler.add(0, "one")
    scheduler.add(1, "two")
    assert starts(scheduler.decide(0)) == [(0, 0, "a"), (0, 1, "a"), (1, 0, "b"), (1, 1, "b")]
    assert scheduler.counts.prepared == 2


def test_a_group_begins_when_there_is_room_for_all_of_it():
    scheduler = made(places=[("a", "node-a", 3)])
    for job in range(2):
        scheduler.add(job, "one")
    assert starts(scheduler.decide(0)) == [(0, 0, "a"), (0, 1, "a")]
    assert scheduler.ended(Attempt(0, 0, 1))
    assert starts(scheduler.decide(1)) == [(1, 0, "a"), (1, 1, "a")]


def test_a_group_larger_than_the_cluster_runs_in_turns():
    scheduler = made(places=[("a", "node-a", 1)], group_size=3)
    scheduler.add(0, "one")
    for member in range(3):
        assert starts(scheduler.decide(0)) == [(0, member, "a")]
        scheduler.ended(Attempt(0, member, 1))
    assert scheduler.decide(0) == [Grade(0, 1, "a")]


def test_a_lost_member_is_tried_again_on_another_node_and_then_masked():
    scheduler = made(retries=1)
    scheduler.add(0, "one")
    (first, _) = scheduler.decide(0)
    scheduler.lost(first.attempt, "its worker died")
    (again,) = scheduler.decide(1)
    assert (again.attempt, again.place) == (Attempt(0, 0, 2), "b")
    scheduler.place_down("b", "node-b died", 2.0)
    assert [d for d in scheduler.decide(2) if isinstance(d, Mask)] == [Mask(0, 0, "node-b died (2 attempts)")]
    scheduler.ended(Attempt(0, 1, 2))
    assert scheduler.decide(3) == [Grade(0, 1, "a")]


def test_what_is_heard_of_a_lost_attempt_later_counts_no_more():
    scheduler = made()
    scheduler.add(0, "one")
    scheduler.decide(0)
    scheduler.lost(Attempt(0, 0, 1), "silence")
    scheduler.decide(0)
    assert not scheduler.ended(Attempt(0, 0, 1))
    assert scheduler.ended(Attempt(0, 0, 2))


def test_the_deadline_is_the_groups_and_a_retry_has_what_is_left_of_it():
    scheduler = made(deadline_s=10.0)
    scheduler.add(0, "one")
    assert [d.deadline_s for d in scheduler.decide(5.0)] == [10.0, 10.0]
    scheduler.lost(Attempt(0, 0, 1), "died")
    assert [d.deadline_s for d in scheduler.decide(9.0)] == [6.0]
    scheduler.lost(Attempt(0, 0, 2), "died")
    assert scheduler.decide(15.0) == [Mask(0, 0, "deadline of the group")]


def test_a_broken_task_ends_its_job_and_cuts_the_others():
    scheduler = made()
    scheduler.add(0, "one")
    (first, second) = scheduler.decide(0)
    scheduler.broken(first.attempt, "no such commit")
    assert scheduler.decide(0) == [Cut(second.attempt, second.place), Fail(0, "no such commit")]
    assert scheduler.running == 1  # its slot is free when it is heard of
    assert not scheduler.ended(second.attempt)
    assert scheduler.running == 0


def test_a_node_that_cannot_run_such_tasks_is_left_and_if_all_are_so_the_job_fails():
    scheduler = made(retries=1)
    scheduler.add(0, "one")
    scheduler.decide(0)
    scheduler.lost(Attempt(0, 0, 1), "no bwrap", unfit=True)
    ((attempt, place, _),) = scheduler.decide(0)
    assert place == "b"
    scheduler.lost(attempt, "no bwrap", unfit=True)
    assert scheduler.decide(0)[-1] == Fail(0, "no bwrap")


def test_a_grading_that_is_lost_goes_elsewhere_and_then_the_group_keeps_its_plain_advantages():
    scheduler = made(group_size=1, retries=1)
    scheduler.add(0, "one")
    scheduler.decide(0)
    scheduler.ended(Attempt(0, 0, 1))
    (first,) = scheduler.decide(0)
    scheduler.place_down(first.place, "node died", 0.0)
    (second,) = scheduler.decide(0)
    assert second.number == 2
    assert second.place != first.place
    scheduler.grading_lost(0, 1, "the first one again")  # nobody waits for it
    scheduler.grading_lost(0, 2, "out of memory")
    assert scheduler.decide(0) == [Plain(0, "out of memory (2 gradings)")]


def test_episodes_that_vanished_with_their_node_are_run_again():
    scheduler = made()
    scheduler.add(0, "one")
    scheduler.decide(0)
    scheduler.ended(Attempt(0, 0, 1))
    scheduler.ended(Attempt(0, 1, 1))
    scheduler.decide(0)
    scheduler.vanished(0, 1, (1,), "the node that kept it died")
    ((attempt, *_),) = scheduler.decide(0)
    assert attempt == Attempt(0, 1, 2)
    scheduler.ended(attempt)
    assert [d.number for d in scheduler.decide(0)] == [2]
    assert scheduler.graded(0, 2)


def test_back_pressure_counts_what_the_caller_has_not_taken():
    scheduler = made(places=[("a", "node-a", 4)], groups=1, ahead=1, group_size=1)
    for job in range(2):
        assert scheduler.has_room
        scheduler.add(job, "one")
    assert not scheduler.has_room
    for job in range(2):
        scheduler.decide(0)
        scheduler.ended(Attempt(job, 0, 1))
        scheduler.decide(0)
        assert scheduler.graded(job, 1)
    assert not scheduler.has_room
    scheduler.taken(0)
    assert scheduler.has_room


def test_without_any_node_begun_groups_end_after_the_patience():
    scheduler = made(places=[("a", "node-a", 2)], patience_s=60)
    scheduler.add(0, "one")
    scheduler.decide(0)
    scheduler.place_down("a", "node died", 10.0)
    assert scheduler.decide(69.0) == []
    *masked, plain = scheduler.decide(70.0)
    assert {(d.job, d.member) for d in masked} == {(0, 0), (0, 1)}
    assert plain == Plain(0, "no node with room for 60 seconds")
    assert scheduler.is_starved(71.0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"group_size": 0}, "group_size must be 1 or more, got 0"),
        ({"group_size": 1, "retries": -1}, "retries must be 0 or more"),
        ({"group_size": 1, "deadline_s": 0}, "deadline_s must be above 0"),
        ({"group_size": 1, "window": float("nan")}, "window must be above 0"),
    ],
)
def test_bounds_out_of_range_are_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        Bounds(**wrong)
