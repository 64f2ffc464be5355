"""Train a policy by redistributed advantages: python examples/train_torch.py --smoke.

One file, top to bottom: settings, tokenizer and model, sampling, demonstrations, rollouts, loss, loop.

    python examples/train_torch.py --steps 60                                   a small transformer from scratch
    python examples/train_torch.py --model FOLDER_OR_NAME --out runs/model      a causal model of Hugging Face
    python examples/train_torch.py --resume                                     goes on where `--out` stopped

A small transformer knows nothing, so it is fine-tuned first on demonstrations: episodes that work on six small tasks in
clean, sloppy and wrong ways. Then each step plays groups, lets the grader rank what passed, and takes one gradient step
of the clipped objective on the redistributed advantages. CPU and CUDA take the same flags; on CUDA the model runs in
bfloat16. Needs gagar-env[torch]; tensorboard is used where it is installed.
"""

import argparse
import copy
import json
import logging
import math
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from gagar_env import Episode, GroupVectorEnv, Task, load_task, register_tasks
from gagar_env.actions import ActionFormat
from gagar_env.agents.graders import get_grader
from gagar_env.agents.policies import BatchedPolicy, Generated
from gagar_env.agents.policies.chat_tokens import ChatTokens
from gagar_env.agents.policies.script import ScriptActor
from gagar_env.errors import GagarError
from gagar_env.integrations.torch import padded, token_logprobs
from gagar_env.rollout import Policy
from gagar_env.trajectory import SampledTokens, Segment, TokenRecorder, segments
from gagar_env.wrappers import GroupRewardWrapper
from gagar_env.wrappers.batches import GroupBatch

SYSTEM = "You fix one issue in a repository. Answer with one bash script, or: submit"


@dataclass
class Settings:
    """Every flag, with its default."""

    out: str = "runs/torch"
    model: str = "tiny"  # or a folder or a name for transformers
    folder: str = str(Path(__file__).parent / "grpo_vs_gagar" / "smalltasks")  # of tasks, beside the built-in ones
    tasks: str = "clamp-order,leap-century,pager-last-page,price-below-zero,retry-doubles,windows-last"
    seed: int = 0
    steps: int = 60
    # rollouts
    groups: int = 6  # groups to train on in each step
    attempts: int = 1  # groups to try for each of them: above 1, those without a signal are replaced
    group_size: int = 8
    turns: int = 8
    max_new_tokens: int = 96
    output_bytes: int = 600
    temperature: float = 1.0
    sandbox: str = "auto"
    # advantages
    grader: str = "rule"  # or none: plain group advantages
    base: Literal["grpo", "dr_grpo", "rloo"] = "grpo"
    scheme: Literal["linear", "geometric", "tiers"] = "linear"
    strength: float = 0.75
    preserve: Literal["episode", "token"] = "token"  # as `mean`: the sum that is kept is the one that the loss sees
    # objective
    lr: float = 3e-4
    epochs: int = 1  # passes over the groups of a step
    minibatches: int = 1  # optimizer steps in a pass
    rows: int = 16  # rows in memory at one time; their gradients are added up
    mean: Literal["token", "episode"] = "token"
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl: float = 0.0
    entropy: float = 0.0
    max_norm: float = 1.0
    # demonstrations
    demos: int = 480  # 0 for a model that can act without
    demo_epochs: int = 14
    demo_rows: int = 8
    demo_lr: float = 2e-3
    # tiny model
    width: int = 128
    layers: int = 2
    heads: int = 4
    context: int = 2048
    # machine
    device: str = "auto"
    threads: int = 0
    save_every: int = 10

    def __post_init__(self) -> None:
        if self.context <= self.max_new_tokens:
            raise ValueError(f"context {self.context} must be more than max_new_tokens, {self.max_new_tokens}")
        if not 0 <= self.strength < 1:
            raise ValueError(f"strength must be in [0, 1), got {self.strength}")
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")


OF_THE_START = (
    *("model", "tasks", "turns", "output_bytes", "demos", "demo_epochs", "demo_rows", "demo_lr"),
    *("width", "layers", "heads", "context"),
)
"""Settings that decide what the starting policy is."""


# ---------------------------------------------------------------- tokenizer and model


class WordTokenizer:
    """One token for each word and sign that the demonstrations hold, with the blank before it, and each long line.

    A long line is one token if it is read again and again; words that are not known share tokens by their hash.
    It has as much of the interface of transformers' tokenizers as is used here.
    """

    eos_token, eos_token_id, buckets = "<|end|>\n", 1, 64
    signs = r"<\|\w+\|>\n| ?\w+| ?[^\w\s]|\s"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.unsaid = 2 + self.buckets  # 0 is padding, 1 the end; then come those that stand for unknown words
        self._ids = {word: number for number, word in enumerate(self.words, self.unsaid)} | {self.eos_token: 1}
        whole = [word for word in self.words if not re.fullmatch(self.signs, word)]
        self.pieces = re.compile("|".join([*map(re.escape, whole), self.signs]))

    @classmethod
    def of(cls, wrote: Sequence[str], read: Sequence[str]) -> "WordTokenizer":
        """Of all that was written, and of what was read more than once."""
        often = Counter(word for text in read for word in re.findall(cls.signs, text))
        lines = Counter(line for text in read for line in text.splitlines() if len(line) > 40)
        words = {word for text in wrote for word in re.findall(cls.signs, text)}
        words |= {f"<|{role}|>\n" for role in ("system", "user", "assistant")}
        words |= {word for word, count in often.items() if count > 1}
        return cls(sorted(words | {line for line, count in lines.items() if count > len(read) / 50}))

    def __len__(self) -> int:
        return self.unsaid + len(self.words)

    def apply_chat_template(self, chat: Sequence[dict], *, tokenize: bool, add_generation_prompt: bool) -> str:
        """The chat as one text."""
        text = "".join(f"<|{message['role']}|>\n{message['content']}{self.eos_token}" for message in chat)
        return text + ("<|assistant|>\n" if add_generation_prompt else "")

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict:
        """The ids of a text."""
        return {"input_ids": [self._id(word) for word in self.pieces.findall(text)]}

    def _id(self, word: str) -> int:
        return self._ids.get(word, 2 + sum(word.encode("utf-8", "replace")) % self.buckets)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """The text of sampled ids."""
        return "".join(self.words[i - self.unsaid] for i in ids if i >= self.unsaid)


class Cache:
    """Keys and values of the tokens so far, for each layer."""

    def __init__(self, layers: int) -> None:
        self.layers: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * layers
        self.used = 0


class TinyTransformer(nn.Module):
    """A decoder of a few layers; called as the causal models of transformers are."""

    def __init__(self, vocabulary: int, *, width: int, layers: int, heads: int, context: int, unsaid: int) -> None:
        super().__init__()
        self.heads, self.unsaid = heads, unsaid
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
                }
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02 if "qkv" in name or "mlp" in name else 0.05)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: Cache | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> SimpleNamespace:
        """Logits (B, T, V), or the last `logits_to_keep` of them; what cannot be said has none."""
        cache = past_key_values or Cache(len(self.blocks))
        count, keys = input_ids.shape[1], attention_mask.shape[1]
        seen = attention_mask.bool()[:, None, None, :]
        row = torch.arange(keys - count, keys, device=input_ids.device)[:, None]
        column = torch.arange(keys, device=input_ids.device)
        mask = (column <= row) & seen | (column == row)  # a row of padding sees itself: nothing at all gives NaN
        x = self.tokens(input_ids) + self.places(position_ids)
        for number, block in enumerate(self.blocks):
            q, k, v = block["qkv"](block["norm1"](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            if use_cache:
                k, v = self._cached(cache, number, k, v)
            x = x + block["out"](F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
            x = x + block["mlp"](block["norm2"](x))
        cache.used += count
        logits = self.norm(x[:, -logits_to_keep:]) @ self.tokens.weight.T
        logits[..., 2 : self.unsaid] = logits[..., :1] = -1e9  # unknown words and padding
        return SimpleNamespace(logits=logits, past_key_values=cache)

    def _cached(self, cache: Cache, number: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values so far, in buffers that double when they are full."""
        start, end = cache.used, cache.used + k.shape[2]
        held = cache.layers[number]
        if held is None or held[0].shape[2] < end:
            room = [torch.zeros(*t.shape[:2], 2 * end, t.shape[3], dtype=t.dtype, device=t.device) for t in (k, v)]
            for new, old in zip(room, held or (), strict=False):
                new[:, :, :start] = old[:, :, :start]
            held = cache.layers[number] = room[0], room[1]
        for buffer, new in zip(held, (k, v), strict=True):
            buffer[:, :, start:end] = new
        return held[0][:, :, :end], held[1][:, :, :end]


# ---------------------------------------------------------------- sampling


def precision(device: torch.device) -> Any:
    """bfloat16 on CUDA: in sampling as in learning, so that the ratio of both is 1 before the first step."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


@torch.no_grad()
def sample(model: nn.Module, prompts: list[list[int]], seeds: list[int], s: Settings, eos: int) -> tuple[list, list]:
    """Completions and their log-probabilities. The draw of a row depends on its seed, not on its neighbours."""
    device, width = next(model.parameters()).device, max(map(len, prompts))
    draws = torch.tensor(
        np.stack([np.random.default_rng(seed).random(s.max_new_tokens) for seed in seeds]), device=device
    )
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    position = (mask.cumsum(1) - 1).clamp(min=0)
    with precision(device):
        out = model(input_ids=ids, attention_mask=mask, position_ids=position, use_cache=True, logits_to_keep=1)
    last, said, chances = position[:, -1:], [], []
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for number in range(s.max_new_tokens):
        logprobs = (out.logits[:, -1].double() / s.temperature).log_softmax(-1)
        cumulative = logprobs.exp().cumsum(-1)
        token = torch.searchsorted(cumulative, draws[:, number : number + 1] * cumulative[:, -1:])
        token = token.clamp(max=logprobs.shape[-1] - 1)
        said.append(token)
        chances.append(logprobs.gather(-1, token))
        ended |= token[:, 0] == eos
        if bool(ended.all()) or number == s.max_new_tokens - 1:
            break
        mask, last = F.pad(mask, (0, 1), value=1), last + 1
        cache = out.past_key_values
        with precision(device):
            out = model(input_ids=token, attention_mask=mask, position_ids=last, past_key_values=cache, use_cache=True)
    tokens, logs = torch.cat(said, 1).tolist(), torch.cat(chances, 1).tolist()
    lengths = [row.index(eos) + 1 if eos in row else len(row) for row in tokens]
    return [row[:n] for row, n in zip(tokens, lengths, strict=True)], [
        row[:n] for row, n in zip(logs, lengths, strict=True)
    ]


# ---------------------------------------------------------------- demonstrations


class Demonstrator:
    """Looks, edits, sometimes looks again, sometimes leaves notes behind, and submits: a mixture of ways to work.

    The edits are those of `commands.json` beside the tasks, whose names say what they are.

    Args:
        folder: Of the tasks.
        weights: Chance of each kind of edit.
        notes: Chance that notes are written into the repository; half of them stay there.
    """

    name = "demonstrator"

    def __init__(self, folder: Path, weights: dict[str, float] | None = None, *, notes: float = 0.4) -> None:
        self.weights = weights or {"clean": 0.3, "sloppy": 0.4, "wrong": 0.3}
        self.notes = notes
        self.commands = json.loads((folder / "commands.json").read_text())

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`."""
        chance, known = random.Random(f"{seed} {task.id}"), self.commands[task.id]
        by_kind: dict[str, list[str]] = {}
        for name, edit in known["edits"].items():
            by_kind.setdefault("clean" if name == "reference" else name.split("-")[0], []).append(edit)
        kind = chance.choices(list(self.weights), list(self.weights.values()))[0]
        around = ["ls", "git status --short", known["look"], "git diff --stat"]
        script = [*chance.sample(around[:2], chance.choice([0, 0, 1, 2])), known["look"]]
        if noted := chance.random() < self.notes:
            script.append("echo 'look here' > todo.txt")
        script.append(chance.choice(by_kind[kind]))
        script += chance.sample(around, chance.choice([0, 0, 1, 2]))
        if noted and chance.random() < 0.5:
            script.append("rm todo.txt")
        return ScriptActor(map(actions.bash, script), actions)


def demonstrations(s: Settings, demonstrator: Policy) -> list[Episode]:
    """Real episodes of the demonstrator on each task in turn, whatever came of them."""
    if not s.demos:
        return []
    found: list[Episode] = []
    tasks = s.tasks.split(",")
    env = GroupVectorEnv(tasks[0], group_size=16, **env_arguments(s))
    wrapper = GroupRewardWrapper(env, seed=0)
    try:
        count = -(-s.demos // 16)
        played = wrapper.collect(
            demonstrator, count, max_attempts=count, tasks=tasks, on_group=lambda group: found.extend(group.episodes)
        )
        list(played)
    finally:
        env.close()
    return [episode for episode in found if episode.valid]


def as_segments(episode: Episode, tokenizer: Any) -> tuple[Segment, ...]:
    """The tokens of an episode that was played without a model."""
    tokens, recorder, chat = ChatTokens(tokenizer), TokenRecorder(), [{"role": "system", "content": SYSTEM}]
    turns, read = [], episode.first_observation
    for turn in episode.turns:
        chat = [*chat, {"role": "user", "content": read}]
        prompt = tokens.prompt(chat)
        said = [*tokenizer(turn.action, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        tokens.sampled(chat, turn.action, prompt, said)
        turns.append(turn.model_copy(update={"tokens": recorder.turn(SampledTokens(prompt, said))}))
        chat, read = [*chat, {"role": "assistant", "content": turn.action}], turn.observation
    return segments(episode.model_copy(update={"turns": tuple(turns)}))


def fine_tune(model: nn.Module, rows: list[Segment], s: Settings, say: Callable[[str], None]) -> None:
    """Next-token loss on what the demonstrations wrote."""
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.demo_lr, weight_decay=0.0)
    order = random.Random(s.seed)
    total = max(1, s.demo_epochs * -(-len(rows) // s.demo_rows))
    step = 0
    for epoch in range(s.demo_epochs):
        for chosen in batches(rows, s.demo_rows, order):
            ids = nn.utils.rnn.pad_sequence([torch.from_numpy(row.ids) for row in chosen], batch_first=True).to(device)
            train = nn.utils.rnn.pad_sequence([torch.from_numpy(row.trained) for row in chosen], batch_first=True)
            lengths = torch.tensor([len(row.ids) for row in chosen])
            mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long().to(device)
            loss = -(forward(model, ids, mask, train.to(device), 1.0)[0] * train.to(device)).sum() / train.sum()
            optimizer.param_groups[0]["lr"] = s.demo_lr * min(1.0, 1.02 - step / total, (step + 1) / 10)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), s.max_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
        say(f"demonstrations, epoch {epoch + 1} of {s.demo_epochs}: loss {loss.item():.3f}")


def batches(rows: list[Segment], size: int, order: random.Random) -> Iterator[list[Segment]]:
    """All rows once, in batches of like lengths, in a new order."""
    ranked = sorted(rows, key=lambda row: (len(row.ids), order.random()))
    parts = [ranked[start : start + size] for start in range(0, len(ranked), size)]
    order.shuffle(parts)
    yield from parts


# ---------------------------------------------------------------- loss


def forward(
    model: nn.Module,
    ids: torch.Tensor,
    mask: torch.Tensor,
    trained: torch.Tensor,
    temperature: float,
    *,
    entropy_grad: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of each trained token, (B, T); 0 before the first of them."""
    first = int(trained.any(0).float().argmax())
    keep = ids.shape[1] - max(first - 1, 0)
    position = (mask.cumsum(1) - 1).clamp(min=0)
    with precision(ids.device):
        logits = model(input_ids=ids, attention_mask=mask, position_ids=position, logits_to_keep=keep).logits
    chosen = token_logprobs(logits, ids[:, -keep:], temperature=temperature)
    with torch.set_grad_enabled(entropy_grad and torch.is_grad_enabled()):
        spread = (logits[:, :-1].float() / temperature).log_softmax(-1)
        entropy = F.pad(-(spread.exp() * spread).sum(-1), (1, 0))
    gap = (ids.shape[1] - keep, 0)
    return F.pad(chosen, gap), F.pad(entropy, gap)


@dataclass
class Trainer:
    """The model, what it needs to act, and its optimizer.

    Attributes:
        shape: Called with each group before anything else sees it; returns it, with other advantages if it likes.
        watch: Called with every group that ended, for measurements.
    """

    s: Settings
    model: nn.Module
    tokenizer: Any
    shape: Callable[[GroupBatch], GroupBatch] = lambda group: group
    watch: Callable[[GroupBatch], None] = lambda group: None

    def __post_init__(self) -> None:
        self.model.eval()  # for good: dropout would make a token's probability another one than it was sampled with
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.s.lr, weight_decay=0.0)
        self.reference = copy.deepcopy(self.model).requires_grad_(False)
        self.tokens = ChatTokens(self.tokenizer)
        self.step = 0
        self.env = GroupVectorEnv(
            self.s.tasks.split(",")[0],
            num_groups=self.s.groups,
            group_size=self.s.group_size,
            **env_arguments(self.s),
        )
        self.policy = BatchedPolicy(
            self.generate,
            max_batch=self.env.num_envs,
            max_wait_s=0.15,
            seeded=True,
            context_tokens=self.s.context * 8,
            system_prompt=SYSTEM,
            name=self.s.model,
        )
        self.grader = get_grader(self.s.grader)

    def generate(self, chats: list[list[dict]], seeds: list[int]) -> list[Generated]:
        """Answers to all chats at one time. Of a chat that leaves no room for one, the first tokens are not read."""
        room = self.s.context - self.s.max_new_tokens
        prompts = [self.tokens.prompt(chat)[-room:] for chat in chats]
        said, logprobs = sample(self.model, prompts, seeds, self.s, self.tokenizer.eos_token_id)
        answers = []
        for chat, prompt, ids, logs in zip(chats, prompts, said, logprobs, strict=True):
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            self.tokens.sampled(chat, text, prompt, ids)
            answers.append(Generated.of(text, prompt, ids, logs))
        return answers

    def rollouts(self) -> tuple[list[GroupBatch], list[GroupBatch], GroupRewardWrapper]:
        """Groups to train on, all that were played, and the wrapper with its counts."""
        s, played = self.s, []
        wrapper = GroupRewardWrapper(
            self.env,
            self.grader,
            seed=s.seed * 100_003 + self.step,
            base=s.base,
            scheme=s.scheme,
            strength=s.strength,
            preserve=s.preserve,
        )
        tasks = s.tasks.split(",")
        start = self.step * s.groups % len(tasks)

        def seen(group: GroupBatch) -> None:
            played.append(self.shape(group))
            self.watch(played[-1])

        for _ in wrapper.collect(
            self.policy,
            s.groups,
            max_attempts=s.groups * s.attempts,
            tasks=tasks[start:] + tasks[:start],
            on_group=seen,
        ):
            pass
        played.sort(key=lambda group: group.attempt)
        return [group for group in played if group.result.kept], played, wrapper

    def learn(self, groups: list[GroupBatch]) -> dict[str, float]:
        """Gradient steps on the groups."""
        s, device = self.s, next(self.model.parameters()).device
        means: Counter[str] = Counter()
        norms: list[float] = []
        parts = np.array_split(np.arange(len(groups)), min(s.minibatches, len(groups)))
        share = 1 / (s.epochs * len(parts))
        for _ in range(s.epochs):
            for part in parts:
                batch = padded([groups[i] for i in part], device=device)
                for rows in batch.split(s.rows):
                    here = rows.weights(s.mean)  # a part's weights are those of the whole batch
                    arguments = rows.input_ids, rows.attention_mask, rows.loss_mask, s.temperature
                    new, entropy = forward(self.model, *arguments, entropy_grad=s.entropy != 0)
                    with torch.no_grad():
                        start = forward(self.reference, *arguments)[0]
                    log_ratio = torch.where(rows.loss_mask, new - rows.logprobs, 0.0)
                    ratio = log_ratio.exp()
                    clipped = ratio.clamp(1 - s.clip_low, 1 + s.clip_high)
                    gain = torch.minimum(ratio * rows.advantages, clipped * rows.advantages)
                    away = torch.where(rows.loss_mask, start - new, 0.0)
                    kl = away.exp() - away - 1  # estimator k3 of Schulman's note on approximating KL
                    loss = (here * (s.kl * kl - s.entropy * entropy - gain)).sum()
                    loss.backward()
                    means["loss"] += share * loss.item()
                    means["kl"] += share * (here * kl).sum().item()
                    means["entropy"] += share * (here * entropy).sum().item()
                    means["clipped"] += share * (here * (ratio != clipped)).sum().item()
                norms.append(float(nn.utils.clip_grad_norm_(self.model.parameters(), s.max_norm)))
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
        return {**means, "grad_norm": float(np.mean(norms))}

    def save(self, folder: Path) -> None:
        """All that is needed to go on."""
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "reference": self.reference.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        write_whole(state, folder / "checkpoint.pt")

    def load(self, folder: Path) -> None:
        """Go on where `save` was called."""
        state = torch.load(folder / "checkpoint.pt", map_location=next(self.model.parameters()).device)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.reference.load_state_dict(state["reference"])
        self.optimizer.load_state_dict(state["optimizer"])

    def run(self, log: Callable[[int, dict[str, float]], None], checkpoint: Path | None = None) -> None:
        """Train to the last step."""
        try:
            while self.step < self.s.steps:
                groups, played, wrapper = self.rollouts()
                acted = time.monotonic()
                numbers = measures(played, wrapper)
                if groups:
                    numbers |= self.learn(groups)
                numbers["seconds/grading"] = wrapper.metrics.grading_s
                numbers["seconds/rollout"] = wrapper.metrics.rollout_s
                numbers["seconds/learning"] = time.monotonic() - acted
                log(self.step, numbers)
                self.step += 1
                if checkpoint and (self.step % self.s.save_every == 0 or self.step == self.s.steps):
                    self.save(checkpoint)
        finally:
            self.env.close()


# ---------------------------------------------------------------- numbers


def measures(played: list[GroupBatch], wrapper: GroupRewardWrapper) -> dict[str, float]:
    """What a step's groups were like. Means over valid episodes; of patches, over those that passed."""
    counts = wrapper.metrics
    valid = [(e, group.task) for group in played for e in group.episodes if e.valid]
    passing = [changed_lines(e, task) for e, task in valid if e.passed]
    graded = [group.result for group in played if group.result.graded]
    return {
        "pass_rate": mean(e.passed for e, _ in valid),
        "groups/kept": counts.kept,
        "groups/all_passed": counts.dropped["all_passed"],
        "groups/all_failed": counts.dropped["all_failed"],
        "groups/invalid": counts.dropped["too_few_valid"],
        "patch/lines": mean(inside + outside for inside, outside in passing),
        "patch/out_of_scope_lines": mean(outside for _, outside in passing),
        "turns": mean(len(e.turns) for e, _ in valid),
        "tokens": mean(sum(turn.completion_tokens for turn in e.turns) for e, _ in valid),
        "grader/agreement": mean(result.verdict.confidence for result in graded if result.verdict),
        "grader/fallbacks": counts.grader_fallbacks,
        "advantages/sum_before": sum(group.result.sum_before for group in played if group.result.kept),
        "advantages/sum_after": sum(group.result.sum_after for group in played if group.result.kept),
    }


def changed_lines(episode: Episode, task: Any) -> tuple[int, int]:
    """Lines added and removed: in files that the reference touches too, and in others."""
    concerns = {line.split(" b/")[-1] for line in text_of(task.solution_patch) if line.startswith("diff --git ")}
    counts, here = [0, 0], ""
    for line in text_of(episode.patch):
        if line.startswith("diff --git "):
            here = line.split(" b/")[-1]
        elif line[:1] in "+-" and line[:3] not in ("+++", "---"):
            counts[here not in concerns] += 1
    return counts[0], counts[1]


def text_of(patch: bytes) -> list[str]:
    """Its lines."""
    return patch.decode("utf-8", "replace").splitlines()


def mean(values: Any) -> float:
    """Their mean; NaN if there are none, which no logger takes for a 0."""
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The numbers of each step in a file; what was torn when the process was killed is passed over."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict) and "step" in row]


class Log:
    """Numbers of each step: into a file of JSON lines, to TensorBoard where it is installed, and to the terminal."""

    def __init__(self, folder: Path, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "metrics.jsonl"
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(self.path) if row["step"] < step))
        try:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(folder), purge_step=step)
        except ImportError:
            self.board = None

    def __call__(self, step: int, numbers: dict[str, float]) -> None:
        """Write one step."""
        known = {name: float(value) for name, value in numbers.items() if not math.isnan(value)}
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **known}) + "\n")
        for name, value in known.items():
            if self.board is not None:
                self.board.add_scalar(name, value, step)
        shown = ("pass_rate", "groups/kept", "patch/lines", "turns", "grader/agreement", "entropy", "kl", "grad_norm")
        print(f"step {step}: " + ", ".join(f"{name} {known[name]:.3g}" for name in shown if name in known), flush=True)


# ---------------------------------------------------------------- the whole


def env_arguments(s: Settings) -> dict[str, Any]:
    """How episodes are played."""
    return {"sandbox": s.sandbox, "turns": s.turns, "output_bytes": s.output_bytes, "reuse_reports": True}


def device_of(s: Settings) -> torch.device:
    """The one asked for; by default the GPU, if there is one."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if s.device == "auto" else s.device)


def write_whole(state: dict[str, Any], path: Path) -> None:
    """Save it so that the file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def starting_policy(s: Settings, demonstrator: Policy, folder: Path, say: Callable[[str], None] = print) -> tuple:
    """The model fine-tuned on demonstrations, and its tokenizer; kept in the folder and read from there again.

    Raises:
        GagarError: If the folder has one that was made with other settings.
    """
    torch.manual_seed(s.seed)
    done, made_with = folder / "start.pt", {name: getattr(s, name) for name in OF_THE_START}
    kept = torch.load(done, map_location="cpu") if done.exists() else {}
    for name, value in kept.get("made_with", {}).items():
        if value != made_with[name]:
            raise GagarError(f"{done} was made with {name}={value!r}, not {made_with[name]!r}: give another --out")
    episodes = [] if kept else demonstrations(s, demonstrator)
    if s.model == "tiny":
        wrote = [turn.action for e in episodes for turn in e.turns]
        read = [text for e in episodes for text in (SYSTEM, e.first_observation, *(t.observation for t in e.turns))]
        tokenizer = WordTokenizer(kept["words"]) if kept else WordTokenizer.of(wrote, read)
        model: nn.Module = TinyTransformer(
            len(tokenizer),
            width=s.width,
            layers=s.layers,
            heads=s.heads,
            context=s.context,
            unsaid=tokenizer.unsaid,
        )
    else:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(s.model)
        model = AutoModelForCausalLM.from_pretrained(s.model, dtype=torch.float32)
    model.to(device_of(s))
    if kept:
        model.load_state_dict(kept["model"])
        return model, tokenizer
    rows = [row for episode in episodes for row in as_segments(episode, tokenizer) if len(row.ids) <= s.context]
    if rows:
        passed = mean(e.passed for e in episodes)
        say(f"{len(episodes)} demonstrations, {passed:.0%} of them pass; {len(tokenizer)} tokens")
        fine_tune(model, rows, s, say)
    elif s.model == "tiny":
        raise GagarError("a model from scratch needs demonstrations that fit its context: raise --demos or --context")
    words = getattr(tokenizer, "words", None)
    write_whole({"model": model.state_dict(), "words": words, "made_with": made_with}, done)
    return model, tokenizer


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Settings):
        choices = get_args(get_type_hints(Settings)[field.name]) or None
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=type(field.default), default=field.default, choices=choices)
    parser.add_argument("--resume", action="store_true", help="go on where --out stopped")
    parser.add_argument("--smoke", action="store_true", help="a minute: one task, few demonstrations, three steps")
    arguments = vars(parser.parse_args())
    resume, smoke = arguments.pop("resume"), arguments.pop("smoke")
    try:
        s = Settings(**arguments)
    except ValueError as error:
        parser.error(str(error))
    if smoke:
        s.out += "-smoke" if s.out == Settings.out else ""
        s.tasks, s.demos, s.demo_epochs, s.steps, s.groups, s.group_size = "pager-last-page", 96, 20, 3, 2, 4
    try:
        train(s, resume=resume)
    except GagarError as error:
        sys.exit(f"train_torch: {error}")


def train(s: Settings, *, resume: bool) -> None:
    """Start from demonstrations, or where it stopped, and train to the last step."""
    if s.threads:
        torch.set_num_threads(s.threads)
    register_tasks(Path(s.folder))
    for task in s.tasks.split(","):
        load_task(task)  # a wrong name is told now
    get_grader(s.grader)
    out = Path(s.out)
    model, tokenizer = starting_policy(s, Demonstrator(Path(s.folder)), out)
    trainer = Trainer(s, model, tokenizer)
    if resume and (out / "checkpoint.pt").exists():
        trainer.load(out)
    (out / "settings.json").write_text(json.dumps(asdict(s), indent=1))
    trainer.run(Log(out, trainer.step), out)
    print(f"numbers, TensorBoard's files and the checkpoint are in {out}")


if __name__ == "__main__":
    logging.getLogger("gagar_env").setLevel(logging.ERROR)  # groups without a signal are counted, not told
    main()
