"""What is refused, and with which number; what is cut; and how often something is copied to a device."""

import sys

import pytest
from token_groups import episode, graded

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from gagar_env.errors import MissingDependencyError  # noqa: E402
from gagar_env.integrations.torch import episode_tensors, packed, padded  # noqa: E402

TWO = [([1, 2], [61, 62], [-0.5, -0.25]), ([1, 2, 61, 62, 3], [63, 64], [-1.0, -1.0])]  # 7 tokens, 4 sampled


def pair(**settings):
    return graded([episode("long", TWO), episode("short", TWO[:1], passed=False)], **settings)


def test_indivisible_numbers_are_refused_with_the_number():
    with pytest.raises(ValueError, match=r"^2 rows are no multiple of 8: 6 are missing; pass pad_to_multiple_of=8 "):
        padded([pair()], divisible_by=8)
    with pytest.raises(ValueError, match=r"^11 tokens are no multiple of 4: 1 are missing"):
        packed([pair()], divisible_by=4)
    with pytest.raises(ValueError, match=r"^2 rows are no multiple of 3: 1 are missing"):
        episode_tensors([pair()[0]], divisible_by=3)
    assert len(padded([pair()], divisible_by=2)) == 2
    with pytest.raises(ValueError, match="a multiple must be 1 or more, got 0"):
        padded([pair()], pad_to_multiple_of=0)


def test_rows_of_padding_are_masked_whole_and_attend_to_something():
    batch = padded([pair()], pad_to_multiple_of=8)
    assert batch.input_ids.shape == (8, 7)
    assert batch.lengths == (7, 4, 0, 0, 0, 0, 0, 0)
    assert not batch.loss_mask[2:].any()
    assert not batch.weights("episode")[2:].any()
    assert batch.attention_mask.any(dim=1).all()


def test_a_long_row_is_refused_or_cut_at_its_end():
    with pytest.raises(ValueError, match=r"^episode 'long': a row of 7 tokens is longer than max_length=6; raise it"):
        padded([pair()], max_length=6)
    batch = padded([pair()], max_length=6, too_long="cut")
    assert batch.lengths == (6, 4)
    assert batch.cut_tokens == 1
    assert batch.without_tokens == ()
    assert batch.advantages[0].tolist() == [0, 0, 0.5, 0.5, 0, 0.5]  # what is left keeps its value
    assert batch.episode_advantages.sum() == 0
    assert batch.episode_tokens.tolist() == [3, 2]
    assert packed([pair()], max_length=6, too_long="cut").cu_seqlens.tolist() == [0, 6, 10]


def test_an_episode_of_which_nothing_is_left_is_named():
    batch = padded([pair()], max_length=2, too_long="cut")
    assert batch.without_tokens == ("long", "short")
    assert len(batch) == 0
    assert batch.cut_tokens == 6
    silent = graded([episode("silent", []), episode("b", TWO)][::-1])
    assert len(padded([silent])) == 0  # all passed: dropped
    silent = graded([episode("b", TWO), episode("silent", [], passed=False)])
    batch = padded([silent])
    assert batch.without_tokens == ("silent",)
    assert batch.episode_advantages.tolist() == [0.5, -0.5]
    assert batch.weights("episode").sum().item() == pytest.approx(0.5)  # a half for the one that has no loss


def test_nothing_to_train_on_is_an_empty_batch():
    for batch in (
        padded([]),
        packed([]),
        padded([graded([episode("a", TWO), episode("b", TWO)])], pad_to_multiple_of=4),
    ):
        assert len(batch) == 0
        assert batch.input_ids.numel() == 0
        assert batch.trained_tokens == 0
        assert batch.weights("token").numel() == batch.weights("episode").numel() == 0
    assert len(episode_tensors([])) == 0
    assert list(padded([]).split(2)) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_length": 0}, "max_length must be 1 or more, got 0"),
        ({"too_long": "shrink"}, "too_long must be refuse or cut, got 'shrink'"),
    ],
)
def test_settings_out_of_range(wrong, said):
    with pytest.raises(ValueError, match=said):
        padded([pair()], **wrong)
    with pytest.raises(ValueError, match="mean must be token or episode, got 'row'"):
        padded([pair()]).weights("row")
    with pytest.raises(ValueError, match="rows must be 1 or more, got 0"):
        next(padded([pair()]).split(0))


def test_episodes_that_do_not_belong_to_the_result():
    result, episodes = pair()
    with pytest.raises(ValueError, match=r"^group 'g': its episodes are not those of its result, in their order$"):
        padded([(result, episodes[::-1])])
    bare = [
        e.model_copy(update={"turns": tuple(t.model_copy(update={"tokens": None}) for t in e.turns)}) for e in episodes
    ]
    with pytest.raises(ValueError, match=r"^episode 'long': turn 1 has no tokens"):
        padded([(result, bare)])
    with pytest.raises(ValueError, match=r"^episode 'x': a row begins with a sampled token"):
        padded([graded([episode("x", [([], [61], [-1.0])]), episode("y", TWO, passed=False)])])


def test_one_group_alone_and_a_group_without_its_episodes():
    result, members = pair()
    assert len(episode_tensors(result)) == len(members)
    for given in ([result], (result, members)):  # the second lacks the list around it
        with pytest.raises(TypeError, match="a group needs its episodes: give a list"):
            padded(given)


def test_a_sum_over_tokens_needs_the_tokens_that_are_trained():
    good = pair(preserve="token", tokens=[4, 2])
    assert padded([good]).episode_tokens.tolist() == [4, 2]
    with pytest.raises(
        ValueError, match=r"^episode 'long': 4 trained tokens, but its group was shared out by 5; give "
    ):
        padded([pair(preserve="token", tokens=[5, 2])])


class Copies(TorchDispatchMode):
    """Counts what is copied to the device `meta`, which has no memory: any transfer goes through the dispatcher."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._to_copy.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("layout", "tensors"), [(padded, 10), (packed, 11), (episode_tensors, 6)])
def test_one_copy_for_each_tensor_and_none_for_an_episode(layout, tensors):
    def copies(groups):
        made = [pair() for _ in range(groups)]
        with Copies() as counter:
            batch = layout([m[0] for m in made] if layout is episode_tensors else made, device="meta")
        assert batch.advantages.device.type == "meta"
        return counter.count

    assert copies(1) == copies(40) == tensors


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("layout", [padded, packed])
def test_on_a_gpu(layout):
    here, there = layout([pair()]), layout([pair()], device="cuda")
    for mean in ("token", "episode"):
        assert torch.allclose(here.weights(mean), there.weights(mean).cpu())
    assert torch.equal(here.advantages, there.advantages.cpu())


def test_torch_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"needs? torch: pip install 'gagar-env\[torch\]'"):
        padded([pair()])
