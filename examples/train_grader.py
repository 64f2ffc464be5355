"""Fine-tune a judge on exported sessions with TRL, and put it behind `AgenticGrader`.

gagar grader export gradings.jsonl --out judge-data
python examples/train_grader.py --data judge-data --model PATH_OR_NAME --out judge [--lora]

Needs gagar-env[llm], trl, and peft for --lora. Without --model a tiny one with random weights is trained, and
without --data on sessions of a scripted judge: that shows that all fits together, and makes no judge.
"""

import argparse
import json
import re
from pathlib import Path

import torch
from datasets import Dataset, Features, Json, List
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import SFTConfig, SFTTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from gagar_env.agents.graders import AgenticGrader
from gagar_env.agents.graders.agentic.local import local_model
from gagar_env.grader_eval import evaluate
from gagar_env.grader_eval.export import export
from gagar_env.grader_eval.records import write_gradings
from gagar_env.tasks.registry import load_task

COLUMNS = Features({"messages": List(Json()), "tools": List(Json())})  # else calls get each other's arguments, as None
TASKS = ("ledger-rounding", "sitemap-unicode", "semver-range-resolve")


def scripted_judge(messages: list, info: object) -> ModelResponse:
    """Looks at one patch, then says that the shorter patch is better."""
    index = re.findall(r"^\| (\w+): passed; \+(\d+)", messages[0].parts[0].content, re.M)
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("diff", {"label": index[0][0]})])
    sizes = sorted({int(size) for _, size in index})
    tiers = [[label for label, size in index if int(size) == one] for one in sizes]
    return ModelResponse(parts=[ToolCallPart("submit", {"tiers": tiers})])


def some_sessions(folder: Path) -> Path:
    """Exported sessions of the scripted judge."""
    grader = AgenticGrader(FunctionModel(scripted_judge), sandbox="none", keep_sessions=True)
    found = evaluate(grader, [load_task(name) for name in TASKS], groups=8, seed=1, jobs=1)
    write_gradings(folder / "gradings.jsonl", found.graded)
    export([folder / "gradings.jsonl"], folder / "data", eval_share=0.3)
    return folder / "data"


def read(path: Path) -> list[dict]:
    """The records of a split."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tiny(records: list[dict]) -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """A model of two layers with random weights, and a tokenizer made from the records."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet)
    words.train_from_iterator((json.dumps(record) for record in records), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = qwen2_5_chat_template
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **shape, **heads)), tokenizer


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of `gagar grader export`")
    parser.add_argument("--model", default="", help="that transformers can load; default: a tiny one without sense")
    parser.add_argument("--out", type=Path, default=Path("judge"))
    parser.add_argument("--steps", type=int, default=-1, help="default: one epoch")
    parser.add_argument("--max-length", type=int, default=16_384, help="tokens; longer sessions are left out")
    parser.add_argument("--lora", action="store_true", help="train adapters only, and merge them at the end")
    parser.add_argument("--smoke", action="store_true", help="three steps")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    data = arguments.data or some_sessions(arguments.out)
    splits = {name: read(data / f"{name}.jsonl") for name in ("train", "eval")}
    if arguments.model:
        model = AutoModelForCausalLM.from_pretrained(arguments.model)
        tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    else:
        model, tokenizer = tiny(splits["train"])

    def tokens(messages: list[dict], tools: list[dict], **more: object) -> list[int]:
        text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **more)
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    kept = {name: [r for r in some if len(tokens(**r)) <= arguments.max_length] for name, some in splits.items()}
    print({name: f"{len(kept[name])} of {len(some)} sessions fit" for name, some in splits.items()})
    peft = None
    if arguments.lora:
        from peft import LoraConfig

        peft = LoraConfig(task_type="CAUSAL_LM", target_modules="all-linear")
    config = SFTConfig(
        output_dir=str(arguments.out / "checkpoints"),
        max_steps=3 if arguments.smoke else arguments.steps,
        num_train_epochs=1,
        per_device_train_batch_size=1,
        learning_rate=1e-4,
        max_length=None,
        assistant_only_loss=True,  # what tools returned was written by candidates: nothing to learn to say
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="no",
        report_to=[],
    )
    trainer = SFTTrainer(
        model=model,
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(kept["train"], features=COLUMNS),
        eval_dataset=Dataset.from_list(kept["eval"], features=COLUMNS) if kept["eval"] else None,
        peft_config=peft,
    )
    trainer.train()
    if kept["eval"]:
        print(trainer.evaluate())
    trained = trainer.model.merge_and_unload() if arguments.lora else trainer.model
    trained.save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)

    judge = AutoModelForCausalLM.from_pretrained(arguments.out).eval()

    def generate(messages: list[dict], tools: list[dict]) -> str:
        prompt = torch.tensor([tokens(messages, tools, add_generation_prompt=True)], device=judge.device)
        limit = 40 if arguments.smoke else 1000
        written = judge.generate(prompt, max_new_tokens=limit, do_sample=False, pad_token_id=tokenizer.pad_token_id)
        return tokenizer.decode(written[0, prompt.shape[1] :], skip_special_tokens=True)

    grader = AgenticGrader(local_model(generate, name=str(arguments.out)), sandbox="none")
    found = evaluate(grader, [load_task(TASKS[0])], groups=1, jobs=1).report
    print(f"behind AgenticGrader: {found.usage.calls} calls, fallback rate {found.measures.fallback_rate.value}")


if __name__ == "__main__":
    main()
