"""Real episodes under TRL's trainer: played in sandboxes, verified, graded, and trained on."""

import math

import pytest
import tiny_trl
from tiny_lm import tiny_model, tiny_tokenizer
from tiny_trl import ACTIONS, LOOK, MARKS, PLANS, Scripted, recording

from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import BatchedPolicy, Generated
from gagar_env.errors import PassthroughError
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.integrations.trl import check_groups, gagar_advantage_reward, gagar_rollout, task_dataset
from gagar_env.trajectory import segments

pytest.importorskip("trl")
pytestmark = MARKS


def config(**settings):
    return tiny_trl.config(**({"scale_rewards": "none", "max_completion_length": 2000} | settings))


@pytest.fixture(scope="module")
def tokenizer(tiny_task):
    return tiny_tokenizer([tiny_task.problem_statement] * 3, ACTIONS)


class Marking:
    """Ranks by label, and marks the first turn of each candidate as useful."""

    name = "marking"

    def grade(self, workspace):
        labels = sorted(workspace.passing)
        return Verdict(
            grader=self.name,
            outcome=VerdictOutcome.RANKED,
            tiers=tuple((label,) for label in labels),
            turn_marks={label: {1: "useful"} for label in labels},
        )


def trained(trainer_class, tokenizer, args, task, rollout, **more):
    trainer = recording(trainer_class)(
        model=tiny_model(tokenizer),
        args=args,
        processing_class=tokenizer,
        rollout_func=rollout,
        train_dataset=task_dataset([task], repeats=2),
        **more,
    )
    trainer.train()
    return trainer


def rows(trainer):
    """Every row that reached the loss, without padding: ids after the prompt, which of them train, advantage."""
    for batch in trainer.seen:
        for i in range(len(batch["completion_ids"])):
            real = batch["completion_mask"][i].bool()
            train = (batch["completion_mask"][i] * batch["tool_mask"][i]).bool()
            yield batch["completion_ids"][i][real].tolist(), train[real].tolist(), batch["advantages"][i]


def test_a_whole_episodes_with_graded_advantages(tokenizer, tiny_task, best_kind):
    from trl import GRPOTrainer

    groups, script = [], Scripted(tokenizer)
    args = config()
    rollout = gagar_rollout(
        args,
        grader=RuleGrader(),
        tasks=[tiny_task],
        generate=script,
        max_new_tokens=8,
        on_group=groups.append,
        env={"sandbox": best_kind},
        grading={"base": "dr_grpo", "strength": 0.5},
    )
    trainer = trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)
    (group,) = groups
    result = group.result
    assert result.graded
    assert sorted(result.passed) == [False, False, True, True]
    assert math.isclose(sum(result.advantages), 0, abs_tol=1e-9)
    assert len(set(result.advantages)) == 3  # the better of the two that passed has more
    found = {tuple(ids): (train, value.item()) for ids, train, value in rows(trainer)}
    assert len(found) == 4
    for episode, advantage in zip(group.episodes, result.advantages, strict=True):
        (segment,) = segments(episode)
        train, value = found[tuple(segment.ids[segment.prompt_length :].tolist())]
        assert train == segment.trained[segment.prompt_length :].tolist()
        assert math.isclose(value, advantage, rel_tol=1e-6)
        sampled = segment.ids[segment.trained].tolist()
        plan = next(plan for plan in PLANS if len(plan) == len(episode.turns) and sampled[0] == script.tokens[plan[0]])
        assert sampled == [token for action in plan for token in (script.tokens[action], script.end)]
        assert [turn.action for turn in episode.turns] == list(plan)
    (entry,) = [entry for entry in trainer.state.log_history if "gagar/pass_rate" in entry]
    assert entry["gagar/pass_rate"] == 0.5
    assert entry["gagar/kept_groups"] == 1
    assert entry["gagar/turns"] == 2


def test_what_the_model_reads_is_the_chat_as_its_template_writes_it(tokenizer, tiny_task, best_kind):
    from trl import GRPOTrainer

    script, args = Scripted(tokenizer), config()
    groups = []
    rollout = gagar_rollout(
        args,
        tasks=[tiny_task],
        generate=script,
        max_new_tokens=8,
        on_group=groups.append,
        env={"sandbox": best_kind},
        system_prompt="Fix it.",
    )
    trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)
    longest = max(groups[0].episodes, key=lambda episode: len(episode.turns))
    chat = [{"role": "system", "content": "Fix it."}, {"role": "user", "content": longest.first_observation}]
    for turn in longest.turns[:-1]:
        chat += [{"role": "assistant", "content": turn.action}, {"role": "user", "content": turn.observation}]
    whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert whole in [tokenizer.decode(prompt) for prompt in script.prompts]


def test_b_marks_of_turns_become_advantages_of_tokens(tokenizer, tiny_task, best_kind):
    from gagar_env.integrations.trl import GagarGRPOTrainer

    groups, script = [], Scripted(tokenizer)
    args = config(scale_rewards="group", loss_type="dapo")
    rollout = gagar_rollout(
        args,
        how="advantage",
        grader=Marking(),
        tasks=[tiny_task],
        generate=script,
        max_new_tokens=8,
        on_group=groups.append,
        env={"sandbox": best_kind},
        grading={"preserve": "token"},
    )
    trainer = trained(GagarGRPOTrainer, tokenizer, args, tiny_task, rollout)
    (group,) = groups
    assert group.result.turn_advantages is not None, group.result.fallback
    found = {tuple(ids): (train, value) for ids, train, value in rows(trainer)}
    several = 0
    for number, episode in enumerate(group.episodes):
        (segment,) = segments(episode)
        _, values = found[tuple(segment.ids[segment.prompt_length :].tolist())]
        each = group.result.turn_advantages[number] or (group.result.advantages[number],) * len(episode.turns)
        several += len(set(each)) > 1
        expected = [each[t] if t >= 0 else 0.0 for t in segment.turn[segment.prompt_length :].tolist()]
        assert values.tolist()[: len(expected)] == pytest.approx(expected, rel=1e-6)
        assert not any(values.tolist()[len(expected) :])
    assert several


def test_the_models_own_samples_and_their_probabilities(tokenizer, tiny_task, best_kind):
    """The tokens are the ones that it sampled: TRL finds the probability that was recorded for each."""
    import torch
    from trl import GRPOTrainer

    args = config(temperature=0.7, top_k=5)
    rollout = gagar_rollout(
        args, tasks=[tiny_task], max_new_tokens=12, env={"sandbox": best_kind, "turns": 3}, system_prompt=""
    )
    trainer = trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)
    groups = []
    rollout = gagar_rollout(
        args, tasks=[tiny_task], max_new_tokens=12, env={"sandbox": best_kind, "turns": 3}, on_group=groups.append
    )
    prompts = [row["prompt"] for row in task_dataset([tiny_task])] * 4
    trainer.model.train()
    columns = rollout(prompts, trainer)
    assert trainer.model.training
    for prompt, completion, logprobs, episode in zip(
        *(columns[name] for name in ("prompt_ids", "completion_ids", "logprobs")), groups[0].episodes, strict=True
    ):
        (segment,) = segments(episode)
        assert len(episode.turns) == 3
        ids = torch.tensor([[*prompt, *completion]])
        with torch.no_grad():
            again, _, _ = trainer._get_per_token_logps_and_entropies(
                trainer.model, ids, torch.ones_like(ids), len(completion)
            )
        sampled = torch.tensor(segment.trained[segment.prompt_length :])
        assert int(sampled.sum()) >= 3
        assert torch.allclose(again[0][sampled], torch.tensor(logprobs)[sampled], atol=1e-4)


def test_an_episode_that_is_several_rows_is_refused(tokenizer, tiny_task, best_kind):
    from trl import GRPOTrainer

    def forgets(chats):
        return [Generated.of(LOOK, [len(chat), 7], [9]) for chat in chats]

    args = config()
    rollout = gagar_rollout(
        args, tasks=[tiny_task], policy=BatchedPolicy(forgets), env={"sandbox": best_kind, "turns": 2}
    )
    with pytest.raises(ValueError, match="is 2 rows of tokens, and TRL takes one for each prompt"):
        trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)


def test_members_without_a_result_are_left_out_of_the_sum(tokenizer, tiny_task, best_kind):
    from trl import GRPOTrainer

    class LosesOne(Scripted):
        def __call__(self, prompts, max_new_tokens, trainer):
            begins = not set(self.tokens.values()).intersection(*prompts[:1])  # not the next turn of another member
            if len(prompts) == 1 and self.started == 3 and begins:
                self.started += 1
                raise RuntimeError("no memory")
            return super().__call__(prompts, max_new_tokens, trainer)

    groups, args, script = [], config(), LosesOne(tokenizer)
    rollout = gagar_rollout(
        args,
        tasks=[tiny_task],
        generate=script,
        max_new_tokens=8,
        max_batch=1,
        env={"sandbox": best_kind},
        on_group=groups.append,
    )
    trainer = trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)
    result = groups[0].result
    assert sorted(result.valid) == [False, True, True, True]
    assert result.kept
    trains = [(value.item(), sum(train)) for _, train, value in rows(trainer)]
    assert math.isclose(sum(value for value, n in trains if n), 0, abs_tol=1e-6)
    assert [value for value, n in trains if not n] == [0.0]
    assert sorted(value for value, _ in trains) == pytest.approx(sorted(result.advantages), abs=1e-6)


def test_the_rollout_and_the_trainer_must_fit(tokenizer, tiny_task):
    from trl import GRPOTrainer

    from gagar_env.integrations.trl import GagarGRPOTrainer

    args = config()
    with pytest.raises(ValueError, match=r"gagar_pass_reward: only gagar_advantage_reward may .*how='advantage'"):
        trained(GagarGRPOTrainer, tokenizer, args, tiny_task, gagar_rollout(args))
    rollout = gagar_rollout(args, how="advantage")
    with pytest.raises(ValueError, match="needs a trainer that takes them, and Recording does not"):
        trained(GRPOTrainer, tokenizer, args, tiny_task, rollout, reward_funcs=gagar_advantage_reward)


def test_evaluation_by_single_episodes(tokenizer, tiny_task, best_kind):
    from trl import GRPOTrainer

    groups = []
    args = config(num_generations_eval=1, per_device_eval_batch_size=4)
    rollout = gagar_rollout(
        args,
        tasks=[tiny_task],
        generate=Scripted(tokenizer),
        max_new_tokens=8,
        env={"sandbox": best_kind},
        on_group=groups.append,
    )
    trainer = GRPOTrainer(
        model=tiny_model(tokenizer),
        args=args,
        processing_class=tokenizer,
        rollout_func=rollout,
        reward_funcs=gagar_advantage_reward,
        train_dataset=task_dataset([tiny_task]),
        eval_dataset=task_dataset([tiny_task], repeats=4),
    )
    assert trainer.evaluate()["eval_gagar/pass_rate"] == 0.5
    assert [group.result.reason.value for group in groups] == ["too_few_valid"] * 4


def test_settings_are_looked_at_before_anything_runs(tiny_task):
    with pytest.raises(PassthroughError, match="scale_rewards='group'"):
        gagar_rollout(config(scale_rewards="group"))
    with pytest.raises(ValueError, match="preserve='token' keeps a sum over tokens"):
        gagar_rollout(config(), grading={"preserve": "token"})
    with pytest.raises(ValueError, match=r"max_new_tokens=3000 tokens.*only max_completion_length=2000"):
        gagar_rollout(config(), max_new_tokens=3000)
    with pytest.raises(ValueError, match="strength must be in"):
        gagar_rollout(config(), grading={"strength": 2.0})
    with pytest.raises(ValueError, match="no-such"):
        gagar_rollout(config(), env={"action_format": "no-such"})
    args = config()
    args.per_device_train_batch_size = 2
    with pytest.raises(ValueError, match="a group would be split over processes"):
        gagar_rollout(args)
    with pytest.raises(ValueError, match="a group would be split"):
        check_groups(args)
