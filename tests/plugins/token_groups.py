"""Groups of recorded episodes with tokens, made without an environment, for tests of what learners are given."""

import itertools

from hypothesis import strategies as st

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group
from gagar_env.trajectory import SampledTokens, TokenRecorder
from gagar_env.turn_credit import share_out

MARKS = ("useful", "wasted", "harmful", None)


def episode(name, turns, passed=True, group="g"):
    """An episode of turns `(prompt_ids, completion_ids, logprobs)`; `passed` None makes it invalid."""
    recorder = TokenRecorder()
    record = [
        Turn(action="a", observation="o", completion_tokens=len(wrote), tokens=recorder.turn(SampledTokens(*turn)))
        for turn in turns
        for wrote in [turn[1]]
    ]
    common = {"id": name, "group_id": group, "task_id": "t", "turns": tuple(record)}
    if passed is None:
        return Episode(**common, status=EpisodeStatus.ERROR, error="it broke")
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    return Episode(
        **common, status=EpisodeStatus.SUBMITTED, report=TestReport(outcome=outcome, reason="r" * (not passed))
    )


def graded(episodes, advantages=None, marks=None, **settings):
    """A pair of a result and its episodes: plain advantages, unless others are given; turns share by their marks."""
    result = grade_group(episodes, None, base="dr_grpo", **settings)
    after = result.advantages if advantages is None else tuple(advantages)
    shared = None if marks is None else share_out(after, marks)
    return result.model_copy(update={"advantages": after, "turn_advantages": shared}), tuple(episodes)


@st.composite
def histories(draw):
    """Turns of one episode: each continues the one before, or begins again from a history that was cut."""
    turns, context, last = [], [], []
    for number in range(draw(st.integers(1, 4))):
        read = draw(st.lists(st.integers(1, 60), min_size=1, max_size=4))
        begin = number == 0 or draw(st.booleans())
        context = read if begin else [*context, *last, *read]
        last = draw(st.lists(st.integers(61, 99), min_size=0 if number else 1, max_size=4))
        turns.append((context, last, [draw(st.floats(-5, -0.125, width=32)) for _ in last]))
    return turns


@st.composite
def groups(draw, most=4):
    """Some groups, as `graded` makes them, dropped ones and invalid members among them."""
    made = []
    for number in range(draw(st.integers(1, most))):
        outcomes = draw(st.lists(st.sampled_from([True, False, None]), min_size=2, max_size=5))
        members = [
            episode(f"{number}-{i}", draw(histories()), passed, f"group-{number}") for i, passed in enumerate(outcomes)
        ]
        marked = st.one_of(st.none(), st.just("marks"))
        marks = [
            [draw(st.sampled_from(MARKS)) for _ in m.turns] if draw(marked) else None for m in members
        ]  # an episode without marks shares nothing out
        made.append(graded(members, marks=marks if any(m is not None for m in marks) else None))
    return made


def value_of_tokens(result, member, history):
    """What each sampled token of an episode is to carry, worked out the long way."""
    shared = None if result.turn_advantages is None else result.turn_advantages[member]
    each = shared or [result.advantages[member]] * len(history.turns)
    return list(
        itertools.chain.from_iterable(
            [value] * len(turn.tokens.completion) for value, turn in zip(each, history.turns, strict=True)
        )
    )
