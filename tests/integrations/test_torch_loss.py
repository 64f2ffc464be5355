"""A loss over either layout is the same loss, with the same gradient, in real models."""

import pytest
from token_groups import episode, graded

from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import BatchedPolicy
from gagar_env.agents.policies.batched import Generated
from gagar_env.group import grade_group
from gagar_env.rollout import run_group

torch = pytest.importorskip("torch")
from gagar_env.integrations.torch import packed, padded, token_logprobs  # noqa: E402

VOCABULARY, WIDTH = 100, 16


class Tiny(torch.nn.Module):
    """One layer of causal attention; `seen` says which tokens may see which."""

    def __init__(self):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(32, WIDTH)
        self.mix, self.head = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, positions, seen):
        x = self.token(ids) + self.place(positions)
        q, k, v = self.mix(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / WIDTH**0.5).masked_fill(~seen, -torch.inf)
        return self.head(x + scores.softmax(-1) @ v)


def several_groups():
    turns = [
        ([1, 2, 3], [61, 62], [-0.5, -0.25]),
        ([1, 2, 3, 61, 62, 4], [63], [-1.0]),
        ([9, 8], [64, 65, 66], [-2.0] * 3),
    ]
    return [
        graded(
            [episode("a", turns), episode("b", turns[:2]), episode("c", turns[:1], False), episode("d", turns, None)],
            advantages=[0.5, 0.25, -0.75, 0.0],
            marks=[["useful", None, "wasted"], None, None, None],
        ),
        graded([episode("e", turns[:1]), episode("f", turns[::2], passed=False)]),
    ]


def seen_by(batch):
    if hasattr(batch, "segment_ids"):
        return batch.block_mask()[:, 0]
    return batch.attention_mask[:, None, :].bool() & torch.ones(batch.input_ids.shape[1:] * 2, dtype=torch.bool).tril()


def clipped_loss(logits, batch, mean):
    ratio = (token_logprobs(logits, batch.input_ids) - batch.logprobs).exp()
    gain = torch.minimum(ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages)
    return -(batch.weights(mean) * gain).sum()


def gradient(model, losses):
    model.zero_grad()
    total = 0.0
    for loss in losses:
        loss.backward()
        total += loss.item()
    return total, torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("mean", ["token", "episode"])
def test_padded_packed_and_split_have_one_loss_and_one_gradient(mean):
    torch.manual_seed(0)
    model = Tiny()

    def loss(batch):
        return clipped_loss(model(batch.input_ids, batch.position_ids, seen_by(batch)), batch, mean)

    wide, long = padded(several_groups(), pad_to_multiple_of=8), packed(several_groups(), pad_to_multiple_of=32)
    value, wanted = gradient(model, [loss(wide)])
    assert wanted.isfinite().all()
    assert wanted.abs().max() > 1e-3
    for losses in ([loss(long)], [loss(part) for part in wide.split(3)], [loss(padded(several_groups()))]):
        found, slope = gradient(model, losses)
        assert found == pytest.approx(value, abs=1e-6)
        assert torch.allclose(slope, wanted, atol=1e-6)


def test_a_mean_over_episodes_is_the_sum_of_the_advantages():
    """With the policy that sampled (ratio 1), each episode adds its advantage over the number of episodes."""
    batch = padded(several_groups()[1:])
    assert (batch.weights("episode") * batch.advantages).sum().item() == pytest.approx(0.0, abs=1e-7)
    twice = padded(several_groups())
    shared = sum((twice.weights("episode") * twice.advantages)[twice.episode == 1].sum() for _ in range(5))
    assert shared.item() == pytest.approx(0.25, abs=1e-6)


@pytest.mark.slow
def test_a_transformers_model_agrees_too():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    wide, long = padded(several_groups(), pad_to_multiple_of=8), packed(several_groups())
    value, wanted = gradient(
        model,
        [clipped_loss(model(wide.input_ids, attention_mask=wide.attention_mask).logits, wide, "token")],
    )
    logits = model(long.input_ids, position_ids=long.position_ids, attention_mask=long.block_mask()).logits
    found, slope = gradient(model, [clipped_loss(logits, long, "token")])
    assert wanted.isfinite().all()
    assert found == pytest.approx(value, abs=1e-6)
    assert torch.allclose(slope, wanted, atol=1e-5)


@pytest.mark.slow
def test_episodes_of_a_real_environment_become_tensors(tiny_task, best_kind):
    """A policy that gives its tokens, tests that judge, a grader that ranks, and its values in tensors."""
    fixes = ["sed -i 's/a - b/a + b/' calc.py", "sed -i 's/a - b/a + b/' calc.py; cp calc.py calc_old.py", "ls"]
    number = iter(range(100))

    def generate(chats):
        return [answer(chat) for chat in chats]

    def answer(chat):
        prompt = [ord(c) for message in chat for c in message["content"]]
        text = "```bash\nsubmit\n```" if len(chat) > 2 else f"```bash\n{fixes[next(number) % 3]}\n```"
        return Generated.of(text, prompt, [ord(c) for c in text], [-0.5] * len(text))

    episodes = run_group(tiny_task, BatchedPolicy(generate, max_batch=6), group_size=6, turns=3, sandbox=best_kind)
    result = grade_group(episodes, RuleGrader(), task=tiny_task, base="dr_grpo")
    assert result.graded
    assert sum(result.passed) == 4
    batch = padded([(result, episodes)])
    assert batch.episode_advantages.tolist() == pytest.approx(list(result.advantages))
    for member, value in enumerate(result.advantages):
        here = batch.loss_mask & (batch.episode == member)[:, None]
        assert batch.advantages[here].tolist() == pytest.approx([value] * int(here.sum()))
        text = "".join(map(chr, batch.input_ids[here].tolist()))
        assert text == "".join(turn.action for turn in episodes[member].turns)
