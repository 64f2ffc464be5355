"""Tokens of an episode: what an actor hands over is what the segments give back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env import run_group
from gagar_env.agents.policies import BatchedPolicy, Generated
from gagar_env.episode import Episode, EpisodeStatus, Turn
from gagar_env.trajectory import SampledTokens, TokenRecorder, segments

IDS = st.lists(st.integers(0, 5), max_size=6)


def episode_of(turns):
    recorder = TokenRecorder()
    kept = tuple(Turn(action="a", observation="o", tokens=recorder.turn(turn)) for turn in turns)
    return Episode(id="e", group_id="g", task_id="t", status=EpisodeStatus.SUBMITTED, turns=kept)


@given(st.lists(st.tuples(st.booleans(), IDS, IDS), min_size=1, max_size=6))
def test_every_turn_is_read_back_from_its_row(drawn):
    """Each prompt either continues all that was there before, or is any other one."""
    turns, before = [], []
    for number, (continues, read, wrote) in enumerate(drawn):
        prompt = [*before, *read] if continues else read
        turns.append(SampledTokens(prompt, wrote, [-0.5 * number] * len(wrote)))
        before = [*prompt, *wrote]
    rows = segments(Episode.model_validate_json(episode_of(turns).model_dump_json()))
    assert sum(int(row.trained.sum()) for row in rows) == sum(len(turn.completion_ids) for turn in turns)
    found = {}
    for row in rows:
        assert len(row.ids) == len(row.trained) == len(row.logprobs) == len(row.turn)
        assert row.has_logprobs
        assert not row.trained[: row.prompt_length].any()
        assert not row.logprobs[~row.trained].any()
        for number in set(row.turn[row.trained].tolist()):
            places = np.flatnonzero(row.turn == number)
            found[number] = (row.ids[: places[0]].tolist(), row.ids[places].tolist())
            assert np.allclose(row.logprobs[places], -0.5 * number)
    for number, turn in enumerate(turns):
        if turn.completion_ids:
            assert found[number] == (list(turn.prompt_ids), list(turn.completion_ids))


def test_prompts_that_continue_are_one_row_and_kept_once():
    turns = [SampledTokens([1, 2], [3]), SampledTokens([1, 2, 3, 4], [5, 6]), SampledTokens([1, 2, 3, 4, 5, 6, 7], [8])]
    episode = episode_of(turns)
    (row,) = segments(episode)
    assert row.ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert row.turn.tolist() == [-1, -1, 0, -1, 1, 1, -1, 2]
    assert row.prompt_length == 2
    assert not row.has_logprobs
    assert [len(turn.tokens.prompt) for turn in episode.turns] == [2, 1, 1]


def test_a_history_that_was_cut_begins_a_new_row():
    turns = [SampledTokens([1, 2, 9], [3]), SampledTokens([1, 2, 7], [5])]
    first, second = segments(episode_of(turns))
    assert first.ids.tolist() == [1, 2, 9, 3]
    assert second.ids.tolist() == [1, 2, 7, 5]
    assert second.turn.tolist() == [-1, -1, -1, 1]


def test_turns_without_tokens_are_named():
    episode = Episode(
        id="e", group_id="g", task_id="t", status=EpisodeStatus.SUBMITTED, turns=(Turn(action="a", observation="o"),)
    )
    with pytest.raises(ValueError, match=r"episode 'e': turn 1 has no tokens"):
        segments(episode)


@pytest.mark.parametrize(
    ("sampled", "said"),
    [
        (SampledTokens([1.5], [2]), "whole numbers"),
        (SampledTokens([1], [-2]), "whole numbers"),
        (SampledTokens([1], [2, 3], [-0.1]), "1 logprobs for 2"),
    ],
)
def test_what_is_no_token_is_refused(sampled, said):
    with pytest.raises(ValueError, match=said):
        TokenRecorder().turn(sampled)


def test_tokens_of_a_batched_policy_reach_the_record():
    """Real episodes: each chat becomes ids, one a character, and the episode gives them back."""

    def generate(chats):
        answers = []
        for chat in chats:
            prompt = [ord(c) for message in chat for c in message["content"]]
            text = "ls" if len(chat) == 2 else "submit"
            answers.append(Generated.of(text, prompt, [ord(c) for c in text], [-1.0] * len(text)))
        return answers

    policy = BatchedPolicy(generate, max_batch=2, system_prompt="be brief")
    for episode in run_group("ledger-rounding", policy, group_size=2):
        (row,) = segments(episode)
        actions = ["".join(map(chr, row.ids[row.turn == number])) for number in (0, 1)]
        assert actions == [turn.action for turn in episode.turns] == ["ls", "submit"]
        assert [turn.completion_tokens for turn in episode.turns] == [2, 6]
        starts = [int(np.flatnonzero(row.turn == number)[0]) for number in (0, 1)]
        assert all(a < b for a, b in pairwise(starts))
        assert episode.turns[0].prompt_tokens == starts[0]


def test_tokens_that_are_none_cost_their_own_episode():
    policy = BatchedPolicy(lambda chats: [Generated.of("ls", [1], [2], [0.0, 0.0]) for _ in chats])
    (episode,) = run_group("ledger-rounding", policy, group_size=1)
    assert not episode.valid
    assert "2 logprobs for 1" in episode.error
