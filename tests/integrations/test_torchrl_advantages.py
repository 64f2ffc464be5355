"""torchrl: the key `advantage` is what GRPOLoss multiplies with, and MCAdvantage is what divides by a std."""

import pytest
import torch
from tensordict import TensorDict

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.errors import PassthroughError
from gagar_env.group import grade_group
from gagar_env.integrations import check_passthrough
from gagar_env.integrations.torchrl import with_advantages

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")


def group(outcomes, name="g"):
    kinds = {"p": Outcome.PASSED, "f": Outcome.FAILED}
    episodes = [
        Episode(
            id=f"{name}{place}",
            group_id=name,
            task_id="ledger-rounding",
            status=EpisodeStatus.SUBMITTED if letter in kinds else EpisodeStatus.ERROR,
            error="" if letter in kinds else "the machine broke",
            report=TestReport(outcome=kinds[letter]) if letter in kinds else None,
        )
        for place, letter in enumerate(outcomes)
    ]
    return grade_group(episodes, None, base="dr_grpo")


def batch(rows, length=5):
    tokens = torch.arange(rows * length).view(rows, length)
    return TensorDict({("tokens", "full"): tokens, "row": torch.arange(rows)}, batch_size=[rows])


def test_rows_that_are_trained_on_have_the_number_of_their_episode_at_each_place():
    found = with_advantages(batch(9), [group("pfef"), group("pp"), group("fpf", "h")])
    assert found["row"].tolist() == [0, 1, 3, 6, 7, 8]
    assert found["advantage"].shape == (6, 5, 1)
    assert found["advantage"].dtype is torch.float32
    wanted = torch.tensor([2, -1, -1, -1, 2, -1]) / 3
    assert torch.allclose(found["advantage"], wanted.view(-1, 1, 1).expand(-1, 5, 1), atol=1e-6)


def test_several_rows_of_one_episode_share_its_number():
    before = batch(3)
    found = with_advantages(before, group("pf"), rows=[0, 1, 0], key=("mine", "advantage"))
    assert found["mine", "advantage"][:, 0, 0].tolist() == [0.5, -0.5, 0.5]
    assert set(before.keys()) == {"tokens", "row"}


def test_nothing_to_train_on_is_an_empty_batch():
    assert with_advantages(batch(2), group("ff"))["advantage"].shape == (0, 5, 1)


@pytest.mark.parametrize("rows", [None, [0, 5, 1]])
def test_rows_that_do_not_match_are_refused(rows):
    with pytest.raises(ValueError, match="3 rows do not match 2 episodes"):
        with_advantages(batch(3), group("pf"), rows=rows)


def test_a_key_without_time_is_refused():
    with pytest.raises(ValueError, match="needs \\(rows, T\\)"):
        with_advantages(batch(2), group("pf"), like="row")


@pytest.mark.slow
def test_grpo_loss_takes_the_numbers_as_they_are():
    from torchrl.objectives.llm import GRPOLoss

    class AtTheStart(GRPOLoss):  # its own objective, where every weight is 1; a loss of its own would need a model
        _clip_bounds = (-0.2, 0.2)

    loss = AtTheStart.__new__(AtTheStart)
    torch.nn.Module.__init__(loss)
    found = with_advantages(batch(4), group("pfff"))
    value, _ = loss._compute_policy_objective(torch.zeros(4, 5, 1), found["advantage"])
    assert torch.allclose(value, -found["advantage"], atol=1e-6)
    assert check_passthrough(loss).learner == "torchrl"


@pytest.mark.slow
def test_mc_advantage_divides_by_the_std_and_is_refused():
    from torchrl.objectives.llm.grpo import MCAdvantage

    transform = MCAdvantage(grpo_size=4, prompt_key="group_id", trajectory_return="sum")
    with pytest.raises(PassthroughError, match="always divides by the group's std"):
        check_passthrough(transform, how="reward")
    numbers = torch.tensor([0.8, 0.2, -0.5, -0.5])
    for number in numbers:
        ends = TensorDict({"reward": number.view(1, 1), "done": torch.ones(1, 1, dtype=torch.bool)}, batch_size=[1])
        done = transform.inv(TensorDict({"group_id": torch.zeros(1), "next": ends}, batch_size=[1]))
    assert done["advantage"].shape[0] == 4
    assert not torch.allclose(done["advantage"].flatten(), numbers, atol=0.05)
