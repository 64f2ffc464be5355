"""Train with TRL's GRPOTrainer, credit shared out in each group by a grader: python examples/train_trl.py --smoke

python examples/train_trl.py --model NAME_OR_PATH --tasks ledger-rounding sitemap-unicode --steps 200 [--by-token]

Needs gagar-env[examples]. Without --model, a model of two layers is made on the spot: its tokenizer has six known
solutions of the first task as one token each, and a warm start shows it all of them, clean, sloppy and wrong, as often
as each other. So there is something to learn within a minute, and nothing to download.
"""

import argparse
from collections import Counter
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from gagar_env import RepoEditEnv, load_task
from gagar_env.actions import get_format
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies.script import apply_command
from gagar_env.integrations.token_chat import ChatFrame
from gagar_env.integrations.trl import GagarGRPOTrainer, gagar_advantage_reward, gagar_rollout, task_dataset
from gagar_env.wrappers.batches import GroupBatch

ACTIONS = get_format("bash")
SYSTEM = "Fix the repository."
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def known_solutions(task_id: str) -> dict[str, str]:
    """Actions that apply known solutions of a task, two of each kind -> their kind."""
    found: dict[str, str] = {}
    for kind in ("clean", "sloppy", "wrong"):
        patches = [s.patch for s in load_task(task_id).solutions if s.kind == kind]
        found |= {ACTIONS.bash(apply_command(patch)): kind for patch in patches[:2]}
    return found


def tiny(task_id: str, actions: list[str]) -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """A model that takes one of the actions, each as likely as the others, and submits then."""
    env = RepoEditEnv(task_id)
    first, _ = env.reset(seed=0)
    second, *_ = env.step(actions[0])
    env.close()
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special, alphabet = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], pre_tokenizers.ByteLevel.alphabet()
    merges = trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet)
    words.train_from_iterator([first, second] * 2, merges)
    words.add_tokens([AddedToken(action, normalized=False) for action in [*actions, ACTIONS.submit()]])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = CHAT
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **shape, **heads, **ends))
    chat = ChatFrame(tokenizer)
    before, between = chat.first(SYSTEM, first), chat.next(second, end_id=tokenizer.eos_token_id)
    *taken, submit, end = tokenizer.convert_tokens_to_ids([*actions, ACTIONS.submit(), tokenizer.eos_token])
    rows = torch.tensor([[*before, action, end, *between, submit, end] for action in taken])
    labels = torch.full_like(rows, -100)
    for at in (len(before), len(before) + 1, -2, -1):
        labels[:, at] = rows[:, at]
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(input_ids=rows, labels=labels).loss
        loss.backward()
        optimizer.step()
    print(f"warm start on {len(actions)} solutions of {task_id}: loss {loss.item():.2f}")
    return model, tokenizer


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="that transformers can load; default: a tiny one, made on the spot")
    parser.add_argument("--tasks", nargs="+", default=["ledger-rounding"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--groups", type=int, default=1, help="of one step")
    parser.add_argument("--strength", type=float, default=0.5, help="of the redistribution, in [0, 1)")
    parser.add_argument("--by-token", action="store_true", help="put the advantages in by token, not as rewards")
    parser.add_argument("--report-to", nargs="*", default=[], help="tensorboard, wandb, ...")
    parser.add_argument("--out", type=Path, default=Path("trained"))
    parser.add_argument("--smoke", action="store_true", help="the tiny model, four steps")
    arguments = parser.parse_args()
    solutions = known_solutions(arguments.tasks[0])
    real = bool(arguments.model) and not arguments.smoke
    if real:
        model = AutoModelForCausalLM.from_pretrained(arguments.model)
        tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    else:
        model, tokenizer = tiny(arguments.tasks[0], list(solutions))
    config = GRPOConfig(
        output_dir=str(arguments.out),
        max_steps=4 if arguments.smoke else arguments.steps,
        per_device_train_batch_size=arguments.group_size * arguments.groups,
        num_generations=arguments.group_size,
        max_completion_length=8192 if real else 512,
        learning_rate=1e-6 if real else 3e-4,
        scale_rewards="none",  # TRL then subtracts the mean of the group, which is 0, and nothing else
        gradient_checkpointing=real,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="no",
        report_to=arguments.report_to,
    )
    counts: list[Counter[str]] = []

    def shown(group: GroupBatch) -> None:
        result = group.result
        firsts = [episode.turns[0].action for episode in group.episodes if episode.turns]
        counts.append(Counter(solutions.get(action, "other") for action in firsts))
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(counts[-1].items()))
        credit = " ".join(f"{value:+.2f}" for value in sorted(result.advantages, reverse=True))
        print(f"{group.task.id}: {result.reason}, {sum(result.passed)} passed ({kinds}); advantages {credit}")

    rollout = gagar_rollout(
        config,
        how="advantage" if arguments.by_token else "reward",
        grader=RuleGrader(),
        system_prompt=None if real else SYSTEM,
        max_new_tokens=1024 if real else 4,
        env={"turns": 20 if real else 3, "reuse_reports": True},
        grading={"strength": arguments.strength},
        on_group=shown,
    )
    common = {"args": config, "processing_class": tokenizer, "rollout_func": rollout}
    common["train_dataset"] = task_dataset(arguments.tasks, repeats=arguments.groups)
    if arguments.by_token:
        trainer = GagarGRPOTrainer(model, **common)
    else:
        trainer = GRPOTrainer(model, reward_funcs=gagar_advantage_reward, **common)
    trainer.train()
    print(f"first group {dict(counts[0])}, last group {dict(counts[-1])}")
    if real:
        trainer.save_model(str(arguments.out))


if __name__ == "__main__":
    main()
