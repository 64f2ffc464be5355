"""The trainer of the examples: what is sampled is what is trained on, and a step goes where the advantages point."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import train_torch as trainer  # noqa: E402

from gagar_env import load_task, register_tasks  # noqa: E402
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn  # noqa: E402
from gagar_env.errors import GagarError  # noqa: E402
from gagar_env.group import grade_group  # noqa: E402
from gagar_env.trajectory import SampledTokens, TokenRecorder  # noqa: E402
from gagar_env.wrappers.batches import GroupBatch  # noqa: E402

SMALL = EXAMPLES / "grpo_vs_gagar" / "smalltasks"
SETTINGS = trainer.Settings(width=16, layers=2, heads=2, context=64, max_new_tokens=8)


def tiny(words=("a", "b", "c", "d"), seed=0):
    torch.manual_seed(seed)
    tokenizer = trainer.WordTokenizer(words)
    s = SETTINGS
    model = trainer.TinyTransformer(
        len(tokenizer), width=s.width, layers=s.layers, heads=s.heads, context=s.context, unsaid=tokenizer.unsaid
    )
    return model.eval(), tokenizer


def test_words_are_read_back():
    text = "sed -i 's|total // size|-(-total // size)|' pager.py\necho done"
    tokenizer = trainer.WordTokenizer.of(
        [text], ["a long line that every observation of this test has, word for word\n"] * 9
    )
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert (
        len(
            tokenizer("a long line that every observation of this test has, word for word", add_special_tokens=False)[
                "input_ids"
            ]
        )
        == 1
    )
    (unknown,) = tokenizer("zzz", add_special_tokens=False)["input_ids"]
    assert 2 <= unknown < tokenizer.unsaid
    chat = [{"role": "user", "content": text}, {"role": "assistant", "content": "submit"}]
    whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(whole, add_special_tokens=False)["input_ids"]
    assert ids.count(tokenizer.eos_token_id) == 2


def test_the_cache_changes_nothing():
    model, tokenizer = tiny()
    ids = torch.randint(tokenizer.unsaid, len(tokenizer), (2, 12))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0  # padded on the left
    position = (mask.cumsum(1) - 1).clamp(min=0)
    whole = model(input_ids=ids, attention_mask=mask, position_ids=position).logits
    out = model(input_ids=ids[:, :7], attention_mask=mask[:, :7], position_ids=position[:, :7], use_cache=True)
    assert torch.allclose(out.logits, whole[:, :7], atol=1e-5)
    for place in range(7, 12):
        here = slice(place, place + 1)
        out = model(
            input_ids=ids[:, here],
            attention_mask=mask[:, : place + 1],
            position_ids=position[:, here],
            past_key_values=out.past_key_values,
            use_cache=True,
        )
        assert torch.allclose(out.logits[:, 0], whole[:, place], atol=1e-5)


def test_a_row_is_sampled_alike_in_any_company():
    model, tokenizer = tiny()
    prompts = [[70, 66], [67], [68, 69, 66, 67]]
    prompts = [[min(i, len(tokenizer) - 1) for i in prompt] for prompt in prompts]
    s = replace(SETTINGS, max_new_tokens=20)
    together, logs = trainer.sample(model, prompts, [5, 6, 7], s, tokenizer.eos_token_id)
    for prompt, seed, ids, log in zip(prompts, (5, 6, 7), together, logs, strict=True):
        (alone,), (again,) = trainer.sample(model, [prompt], [seed], s, tokenizer.eos_token_id)
        assert alone == ids
        assert np.allclose(again, log, atol=1e-4)
        assert all(i == tokenizer.eos_token_id or i >= tokenizer.unsaid for i in ids)


def test_sampled_logprobs_are_those_of_the_forward_pass():
    model, tokenizer = tiny()
    prompts = [[66, 67], [68]]
    s = replace(SETTINGS, temperature=0.7)
    said, logs = trainer.sample(model, prompts, [1, 2], s, tokenizer.eos_token_id)
    for prompt, ids, log in zip(prompts, said, logs, strict=True):
        row = torch.tensor([prompt + ids])
        trained = torch.tensor([[False] * len(prompt) + [True] * len(ids)])
        found, entropy = trainer.forward(model, row, torch.ones_like(row), trained, s.temperature)
        assert torch.allclose(found[trained], torch.tensor(log), atol=1e-4)
        assert (entropy[trained] >= 0).all()


def group_of(model, tokenizer, s, passed):
    """A graded group of one-turn episodes that were sampled from the model."""
    prompts = [[66]] * len(passed)
    said, logs = trainer.sample(model, prompts, list(range(len(passed))), s, tokenizer.eos_token_id)
    episodes = []
    for number, (ids, log, won) in enumerate(zip(said, logs, passed, strict=True)):
        tokens = TokenRecorder().turn(SampledTokens([66], ids, log))
        episodes.append(
            Episode(
                id=str(number),
                group_id="g",
                task_id="pager-last-page",
                status=EpisodeStatus.SUBMITTED,
                turns=(Turn(action="a", observation="o", tokens=tokens, completion_tokens=len(ids)),),
                report=TestReport(outcome=Outcome.PASSED if won else Outcome.FAILED),
            )
        )
    register_tasks(SMALL)
    task = load_task("pager-last-page")
    return GroupBatch(result=grade_group(episodes, None), episodes=tuple(episodes), task=task, attempt=0, seed=0)


def test_a_step_makes_what_passed_more_likely_and_the_loss_is_the_plain_one():
    model, tokenizer = tiny(seed=3)
    register_tasks(SMALL)
    s = replace(SETTINGS, lr=1e-2, temperature=1.0, rows=3, tasks="pager-last-page", groups=1, group_size=2)
    learner = trainer.Trainer(s, model, tokenizer)
    learner.env.close()
    passed = [True, False, True, False, False]
    group = group_of(model, tokenizer, s, passed)
    rows = [(e.turns[0].tokens.completion, a) for e, a in zip(group.episodes, group.result.advantages, strict=True)]
    count = sum(len(ids) for ids, _ in rows)

    def gain():
        """Sum of advantage times log-probability, a token each, by a forward pass of one row at a time."""
        total = 0.0
        for ids, advantage in rows:
            row = torch.tensor([[66, *ids]])
            trained = torch.tensor([[False] + [True] * len(ids)])
            found = trainer.forward(model, row, torch.ones_like(row), trained, 1.0)[0]
            total += advantage * found[trained].sum() / count
        return total

    model.zero_grad()
    (-gain()).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm()
    model.zero_grad()
    before = gain().item()
    numbers = learner.learn([group])
    assert numbers["grad_norm"] == pytest.approx(float(expected), rel=1e-3)  # ratio 1: the gradient of the objective
    assert numbers["kl"] == pytest.approx(0.0, abs=1e-6)
    assert numbers["loss"] == pytest.approx(-sum(len(ids) * a for ids, a in rows) / count, abs=1e-5)
    assert gain().item() > before


def test_dropout_changes_no_probability_in_learning():
    model, tokenizer = tiny(seed=3)
    for block in model.blocks:
        block["mlp"].append(torch.nn.Dropout(0.5))
    register_tasks(SMALL)
    s = replace(SETTINGS, tasks="pager-last-page", groups=1, group_size=2)
    group = group_of(model, tokenizer, s, [True, False, True])
    learner = trainer.Trainer(s, model.train(), tokenizer)
    learner.env.close()
    numbers = learner.learn([group])
    assert numbers["clipped"] == 0
    assert numbers["kl"] == pytest.approx(0.0, abs=1e-6)


def test_a_start_of_other_settings_is_not_taken(tmp_path):
    model, tokenizer = tiny()
    made_with = {name: getattr(SETTINGS, name) for name in trainer.OF_THE_START}
    kept = {"model": model.state_dict(), "words": tokenizer.words, "made_with": made_with}
    trainer.write_whole(kept, tmp_path / "start.pt")
    again, words = trainer.starting_policy(replace(SETTINGS, seed=4, steps=1), None, tmp_path)
    assert words.words == tokenizer.words
    assert all(torch.equal(one, other) for one, other in zip(again.parameters(), model.parameters(), strict=True))
    with pytest.raises(GagarError, match=r"start.pt was made with demos=480, not 96: give another --out"):
        trainer.starting_policy(replace(SETTINGS, demos=96), None, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--context", "64"], "context 64 must be more than max_new_tokens, 96"),
        (["--strength", "1"], "strength must be in [0, 1)"),
        (["--mean", "turn"], "invalid choice: 'turn'"),
        (["--tasks", "pager-last"], "pager-last-page"),
        (["--grader", "ruler"], "ruler"),
        (["--demos", "0"], "a model from scratch needs demonstrations"),
    ],
)
def test_wrong_settings_are_told_before_anything_runs(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train_torch.py", "--out", str(tmp_path), *arguments])
    with pytest.raises(SystemExit) as ended:
        trainer.main()
    said = capsys.readouterr().err + str(ended.value.code)
    assert message in said
    assert "Traceback" not in said


def test_numbers_of_a_run_go_on_where_it_stopped(tmp_path):
    log = trainer.Log(tmp_path, 0)
    for step in range(4):
        log(step, {"pass_rate": 0.5, "patch/lines": float("nan")})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "pa')  # killed as it wrote
    trainer.Log(tmp_path, 2)(2, {"pass_rate": 1.0})
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["pass_rate"]) for row in rows] == [(0, 0.5), (1, 0.5), (2, 1.0)]
    assert all("patch/lines" not in row for row in rows)
    assert list(tmp_path.glob("events.*"))
