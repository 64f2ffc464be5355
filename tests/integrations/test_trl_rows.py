"""Rows for TRL from recorded groups, without TRL: what trains, with which advantage, and what is refused."""

import importlib.util
import math
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from token_groups import episode, graded, groups, value_of_tokens

from gagar_env.errors import MissingDependencyError
from gagar_env.integrations.trl import gagar_advantage_reward, gagar_pass_reward, task_dataset
from gagar_env.integrations.trl_rollout import _groups, task_of
from gagar_env.integrations.trl_rows import as_columns, numbers_of, rows_of, with_tokens_or_invalid
from gagar_env.trajectory import segments

FILLER = 2
ONE = [([1, 2], [70, 71], [-0.5, -1.0])]
TWO = [*ONE, ([1, 2, 70, 71, 3, 4], [72], [-2.0])]
CUT = [*ONE, ([9], [72], [-2.0])]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(groups())
def test_a_row_has_the_tokens_of_its_episode_and_trains_what_was_sampled(made):
    for result, episodes in made:
        split = [e for e, used in zip(episodes, result.mask, strict=True) if used and len(segments(e)) > 1]
        if split:
            with pytest.raises(ValueError, match=f"episode {split[0].id!r} is . rows of tokens"):
                rows_of(result, episodes, FILLER)
            continue
        rows = rows_of(result, episodes, FILLER)
        assert len(rows) == len(episodes)
        for number, (row, member) in enumerate(zip(rows, episodes, strict=True)):
            size = len(row["completion_ids"])
            assert size >= 1
            assert row["prompt_ids"]
            assert {len(row[name]) for name in ("env_mask", "gagar_token_advantages", "logprobs")} == {size}
            if not result.mask[number]:
                assert row["gagar_advantage"] is None
                assert not any(row["env_mask"])
                assert not any(row["gagar_token_advantages"])
                continue
            (segment,) = segments(member)
            assert [*row["prompt_ids"], *row["completion_ids"]] == segment.ids.tolist()
            assert row["env_mask"] == segment.trained[segment.prompt_length :].tolist()
            assert row["gagar_advantage"] == result.advantages[number]
            trained = [v for v, m in zip(row["gagar_token_advantages"], row["env_mask"], strict=True) if m]
            assert trained == value_of_tokens(result, number, member)
        assert math.isclose(math.fsum(row["gagar_advantage"] or 0.0 for row in rows), 0.0, abs_tol=1e-9)


def test_rewards_of_both_ways():
    result, members = graded([episode("a", ONE), episode("b", TWO, False), episode("c", ONE, None)])
    columns = as_columns(rows_of(result, members, FILLER))
    seen = {}
    more = {"gagar_metrics": [{"gagar/pass_rate": 0.5}] * 3, "log_metric": seen.__setitem__, "prompts": None}
    assert gagar_advantage_reward(**columns, **more) == [0.5, -0.5, None]
    assert gagar_pass_reward(**columns, **more) == [1.0, 0.0, None]
    assert seen == {"gagar/pass_rate": 0.5}
    result, members = graded([episode("a", ONE), episode("b", TWO)])  # no signal
    columns = as_columns(rows_of(result, members, FILLER))
    assert columns["gagar_advantage"] == [None, None]
    assert gagar_advantage_reward(**columns) == [0.0, 0.0]


def test_log_probabilities_are_all_there_or_not_at_all():
    result, members = graded([episode("a", [([1], [70], None)]), episode("b", TWO, False)])
    assert as_columns(rows_of(result, members, FILLER))["logprobs"] is None
    result, members = graded([episode("a", ONE), episode("b", TWO, False)])
    assert as_columns(rows_of(result, members, FILLER))["logprobs"] == [[-0.5, -1.0], [-0.5, -1.0, 0.0, 0.0, -2.0]]


def test_an_invalid_member_whose_history_was_cut_ends_nothing():
    result, members = graded([episode("a", ONE), episode("b", TWO, False), episode("c", CUT, None)])
    rows = rows_of(result, members, FILLER)
    assert rows[2]["env_mask"] == [0, 0]


def test_an_episode_without_a_sampled_token_has_no_result():
    silent = with_tokens_or_invalid(episode("a", []))
    assert not silent.valid
    assert silent.error == "the policy sampled no token"
    assert with_tokens_or_invalid(episode("b", ONE)).valid
    result, members = graded([silent, episode("b", ONE), episode("c", ONE, False)])
    assert rows_of(result, members, FILLER)[0]["completion_ids"] == [FILLER]


def test_numbers_for_the_log():
    made = [graded([episode("a", ONE), episode("b", TWO, False), episode("c", ONE, None)])]
    made.append(graded([episode("d", ONE, group="h"), episode("e", ONE, group="h")]))
    sql = b"diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1,2 +1 @@\n--- a comment\n-select 1\n+++ 1\n"
    made[1] = made[1][0], [member.model_copy(update={"patch": sql}) for member in made[1][1]]
    numbers = numbers_of(made)
    assert numbers["gagar/patch_lines"] == 1.5  # 3 each of two, none of the others
    assert numbers["gagar/pass_rate"] == 0.75
    assert (numbers["gagar/kept_groups"], numbers["gagar/all_passed_groups"]) == (1, 1)
    assert (numbers["gagar/invalid_episodes"], numbers["gagar/turns"], numbers["gagar/tokens"]) == (1, 1.25, 2.25)
    assert "gagar/pass_rate" not in numbers_of([graded([episode("a", ONE, None), episode("b", ONE, None)])])


def test_prompts_carry_their_task_and_groups_are_whole():
    assert task_of([{"role": "user", "content": "x", "gagar_task": "one"}]) == "one"
    for bare in ("text", [{"role": "user", "content": "x"}], [], None):
        with pytest.raises(ValueError, match="carries no task: make the dataset with task_dataset"):
            task_of(bare)
    assert _groups(["a", "a", "b", "b"], 2) == ["a", "b"]
    with pytest.raises(ValueError, match="3 rows are no whole number of groups of 2"):
        _groups(["a", "a", "b"], 2)
    with pytest.raises(ValueError, match="rows of one group carry different tasks, 'a' among them"):
        _groups(["a", "b", "b", "b"], 2)


def test_the_module_is_light():
    code = (
        "import sys, gagar_env.integrations, gagar_env.integrations.trl, gagar_env.integrations.passthrough as p;"
        "p.check_passthrough({'scale_rewards': 'none'}, 'trl');"
        "heavy = {'torch', 'trl', 'transformers', 'datasets', 'accelerate', 'stable_baselines3', 'ray', 'torchrl'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_trl_the_extra_is_named(monkeypatch):
    import gagar_env.integrations.trl as module

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for use in (
        lambda: task_dataset(["ledger-rounding"]),
        lambda: module.GagarGRPOTrainer,
        lambda: module.gagar_rollout,
    ):
        with pytest.raises(MissingDependencyError, match=r"pip install 'gagar-env\[trl\]'"):
            use()
    with pytest.raises(AttributeError, match="no attribute 'gagar_rollouts'"):
        module.gagar_rollouts  # noqa: B018


@pytest.mark.slow
def test_the_dataset_has_a_row_for_each_group(tiny_task):
    pytest.importorskip("datasets")
    data = task_dataset([tiny_task, "ledger-rounding"], repeats=2)
    assert data["gagar_task"] == ["tiny-add", "ledger-rounding"] * 2
    assert [task_of(prompt) for prompt in data["prompt"]] == data["gagar_task"]
    assert data[0]["prompt"][0]["content"] == tiny_task.problem_statement
    with pytest.raises(ValueError, match="needs tasks, and repeats of 1 or more: got 0 and 1"):
        task_dataset([])
