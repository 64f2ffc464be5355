"""Values that go into tensors come out of them, whichever way they are laid out."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_groups import episode, graded, groups, value_of_tokens

torch = pytest.importorskip("torch")

from gagar_env.integrations.torch import episode_tensors, packed, padded, token_logprobs  # noqa: E402

FEW = settings(max_examples=12, deadline=None)
THREE = [([1, 2], [61, 62], [-0.5, -0.25]), ([1, 2, 61, 62, 3], [63], [-1.0]), ([9], [64, 65, 66], [-2.0, -3.0, -4.0])]


def trained(made):
    return [(r, i, e) for r, episodes in made for i, e in enumerate(episodes) if r.mask[i]]


def read_back(batch, values):
    """For each episode the values at its trained tokens, row after row."""
    number = batch.episode[batch.segment_ids] if hasattr(batch, "segment_ids") else batch.episode[:, None]
    number = number.expand_as(batch.loss_mask)
    return [values[batch.loss_mask & (number == i)].tolist() for i in range(len(batch.episode_ids))]


@pytest.mark.parametrize("layout", [padded, packed])
@FEW
@given(groups())
def test_each_sampled_token_carries_its_value_its_id_and_its_logprob(layout, made):
    batch, members = layout(made), trained(made)
    assert batch.episode_ids == tuple(e.id for _, _, e in members)
    for (result, i, history), value, token, logprob in zip(
        members,
        read_back(batch, batch.advantages),
        read_back(batch, batch.input_ids),
        read_back(batch, batch.logprobs),
        strict=True,
    ):
        assert value == pytest.approx(value_of_tokens(result, i, history), abs=1e-6)
        assert token == [t for turn in history.turns for t in turn.tokens.completion]
        assert logprob == [x for turn in history.turns for x in turn.tokens.logprobs]
    for name in ("advantages", "logprobs"):
        assert not getattr(batch, name)[~batch.loss_mask].any()


@FEW
@given(groups())
def test_the_advantages_of_a_group_add_up_to_zero_and_dropped_groups_are_gone(made):
    batch = padded(made)
    assert set(batch.episode_group.tolist()) == {n for n, (result, _) in enumerate(made) if result.kept}
    for number in set(batch.episode_group.tolist()):
        assert abs(batch.episode_advantages[batch.episode_group == number].sum().item()) < 1e-6
    wanted = [len(value_of_tokens(r, i, e)) for r, i, e in trained(made)]
    assert batch.episode_tokens.tolist() == wanted
    assert batch.trained_tokens == sum(wanted) == int(batch.loss_mask.sum())


@FEW
@given(groups(), st.integers(1, 9), st.integers(1, 9))
def test_padded_and_packed_agree_and_padding_is_masked(made, rows, length):
    wide = padded(made, pad_to_multiple_of=rows, pad_length_to_multiple_of=length, pad_id=7)
    long = packed(made, pad_to_multiple_of=length, pad_id=7)
    assert len(wide) % rows == 0
    assert wide.input_ids.shape[1] % length == 0
    assert long.input_ids.shape[1] % length == 0
    lengths = torch.tensor(wide.lengths, dtype=torch.int64)
    here = torch.arange(wide.input_ids.shape[1]) < lengths[:, None]
    tokens = int(here.sum())
    for name in ("input_ids", "position_ids", "loss_mask", "advantages", "logprobs"):
        assert torch.equal(getattr(wide, name)[here], getattr(long, name)[0, :tokens]), name
    assert (wide.input_ids[~here] == 7).all()
    assert (long.input_ids[0, tokens:] == 7).all()
    assert not wide.loss_mask[~here].any()
    assert not long.loss_mask[0, tokens:].any()
    assert (wide.episode[lengths == 0] == -1).all()
    assert len(wide) - int((lengths > 0).sum()) < rows
    bounds = long.cu_seqlens.tolist()
    assert bounds[0] == 0
    assert bounds[-1] == long.input_ids.shape[1]
    assert long.max_seqlen == max([b - a for a, b in itertools.pairwise(bounds)], default=0)
    for number, (a, b) in enumerate(itertools.pairwise(bounds)):
        assert long.position_ids[0, a:b].tolist() == list(range(b - a))
        assert set(long.segment_ids[0, a:b].tolist()) == {number}


@FEW
@given(groups(), st.integers(1, 5))
def test_weights_make_a_mean_over_tokens_or_over_episodes(made, rows):
    wide, long = padded(made, pad_to_multiple_of=rows), packed(made, pad_to_multiple_of=rows)
    for batch in (wide, long):
        sums = [sum(values) for values in read_back(batch, batch.weights("episode"))]
        assert sums == pytest.approx([1 / max(len(sums), 1)] * len(sums), abs=1e-6)
        assert batch.weights("token").sum().item() == pytest.approx(float(bool(sums)), abs=1e-6)
    parts = [part for part in wide.split(rows) if len(part)]
    assert sum(len(part) for part in parts) == len(wide)
    for mean in ("token", "episode"):
        whole = (wide.weights(mean) * wide.advantages).sum()
        assert sum((p.weights(mean) * p.advantages).sum() for p in parts) == pytest.approx(whole.item(), abs=1e-6)


@FEW
@given(groups(), st.integers(1, 9))
def test_episodes_without_tokens(made, rows):
    results = [result for result, _ in made]
    every = episode_tensors(results, pad_to_multiple_of=rows)
    assert len(every) % rows == 0
    flat = [(r, i) for r in results for i in range(len(r.mask))]
    for n, (result, i) in enumerate(flat):
        assert every.mask[n] == result.mask[i]
        assert every.passed[n] == result.passed[i]
        assert every.member[n] == i
        assert results[every.group[n]] is result
        assert every.advantages[n].item() == pytest.approx(result.mask[i] * result.advantages[i], abs=1e-6)
    assert not every.mask[len(flat) :].any()
    assert (every.group[len(flat) :] == -1).all()
    assert torch.equal(every.advantages.double().sum().abs() < 1e-5, torch.tensor(True))
    only = episode_tensors(results, trained_only=True)
    assert only.mask.all()
    assert torch.equal(only.advantages, every.advantages[every.mask])


def test_an_episode_in_several_rows_is_never_divided():
    """A history that was cut makes two rows: both carry the whole value."""
    made = graded([episode("two rows", THREE), episode("one", THREE[:1], passed=False)])
    batch = padded([made])
    assert batch.lengths == (6, 4, 4)
    assert batch.episode.tolist() == [0, 0, 1]
    assert batch.loss_mask.int().tolist() == [[0, 0, 1, 1, 0, 1], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0]]
    assert batch.advantages.tolist() == [[0, 0, 0.5, 0.5, 0, 0.5], [0, 0.5, 0.5, 0.5, 0, 0], [0, 0, -0.5, -0.5, 0, 0]]
    assert batch.attention_mask.tolist() == [[1] * 6, [1] * 4 + [0] * 2, [1] * 4 + [0] * 2]
    assert batch.position_ids[1].tolist() == [0, 1, 2, 3, 0, 0]


def test_marks_of_turns_go_to_the_tokens_of_their_turn():
    marks = [["useful", "wasted", None], None]
    made = graded([episode("marked", THREE), episode("plain", THREE[:1], passed=False)], marks=marks)
    batch = packed([made])
    first, second, third = made[0].turn_advantages[0]
    assert first > third > second
    assert sum((first, second, third)) == pytest.approx(1.5)
    assert read_back(batch, batch.advantages)[0] == pytest.approx([first] * 2 + [second] + [third] * 3, abs=1e-6)
    assert batch.episode_advantages.tolist() == [0.5, -0.5]


def test_token_logprobs_stand_where_the_tokens_stand():
    torch.manual_seed(0)
    logits, ids = torch.randn(2, 5, 11, requires_grad=True), torch.randint(0, 11, (2, 5))
    found = token_logprobs(logits, ids, temperature=0.5)
    wanted = torch.log_softmax(logits / 0.5, -1)
    assert found.shape == (2, 5)
    assert not found[:, 0].any()
    for t in range(1, 5):
        assert torch.allclose(found[:, t], wanted[:, t - 1].gather(-1, ids[:, t : t + 1])[:, 0], atol=1e-6)
    assert found.requires_grad


def test_logprobs_are_all_there_or_none():
    bare = [(read, wrote, None) for read, wrote, _ in THREE]
    batch = padded([graded([episode("a", THREE), episode("b", bare, passed=False)])])
    assert batch.logprobs is None
    assert [part.logprobs for part in batch.split(1)] == [None] * 4


def test_numbers_of_the_record_are_not_shared_with_tensors():
    made = graded([episode("a", THREE), episode("b", THREE[:1], passed=False)])
    before = made[0].model_dump_json()
    batch = padded([made])
    batch.advantages.fill_(9.0)
    assert made[0].model_dump_json() == before
    assert np.isclose(padded([made]).advantages.max().item(), 0.5)
