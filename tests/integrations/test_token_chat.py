"""Turns continue the tokens before them, under the chat templates of real models."""

import importlib.util
from pathlib import Path

import pytest
from tiny_lm import tiny_tokenizer

from gagar_env.actions import get_format
from gagar_env.errors import PolicyLimitError
from gagar_env.integrations.token_chat import ChatFrame, TokenPolicy
from gagar_env.trajectory import TokenRecorder

pytest.importorskip("transformers")
pytestmark = pytest.mark.slow  # importing transformers takes seconds

TEMPLATES = {  # of TRL's own collection -> the token that ends a turn
    "qwen2_5": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "llama3_1": "<|eot_id|>",
    "gemma": "<end_of_turn>",
    "gemma3": "<end_of_turn>",
    "phi3": "<|end|>",
}


def templated(name):
    found = importlib.util.find_spec("trl")
    if found is None:
        pytest.skip("TRL is not installed")
    tokenizer = tiny_tokenizer()
    end = TEMPLATES[name]
    tokenizer.add_special_tokens({"additional_special_tokens": [end]})
    tokenizer.bos_token = "<|endoftext|>"
    tokenizer.chat_template = (Path(found.origin).parent / "chat_templates" / f"{name}.jinja").read_text()
    return tokenizer, tokenizer.convert_tokens_to_ids(end)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_pieces_are_the_chat_as_the_template_writes_it(name, ended):
    tokenizer, end = templated(name)
    chat = ChatFrame(tokenizer)
    system = [] if name == "gemma" else [{"role": "system", "content": "Be brief."}]
    first = "Be brief.\n\nThe tests fail." if name == "gemma" else "The tests fail."
    ids = chat.first("Be brief.", "The tests fail.")
    answers = ["```bash\nls\n```", "I see."]
    messages = [*system, {"role": "user", "content": first}]
    for answer in answers:
        sampled = [*tokenizer(answer, add_special_tokens=False)["input_ids"], *([end] if ended else [])]
        ids = [*ids, *sampled, *chat.next("src\ntests", end_id=end if ended else None)]
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "src\ntests"}]
    whole = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(ids) == whole


def test_templates_that_cannot_be_used_are_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] != 'assistant' %}{{ m['content'] }}{% endif %}{% endfor %}"
    )
    with pytest.raises(ValueError, match="does not show what the assistant said"):
        ChatFrame(tokenizer)
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="the tokenizer has no chat template"):
        ChatFrame(tokenizer)


def test_a_template_that_leaves_out_system_messages_shows_them_to_the_user():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] != 'system' %}{{ m['role'] }}:{{ m['content'] }};{% endif %}"
        "{% endfor %}"
    )
    ids = ChatFrame(tokenizer).first("Be brief.", "The tests fail.")
    assert tokenizer.decode(ids) == "user:Be brief.\n\nThe tests fail.;"


def policy(answers, **settings):
    tokenizer = tiny_tokenizer()
    chat = ChatFrame(tokenizer)
    script = iter(answers)

    def generate(prompts):
        return [(next(script), None) for _ in prompts]

    common = {"end_ids": [tokenizer.eos_token_id], "max_new_tokens": 8, "context_tokens": 400, "max_wait_s": 0.0}
    return tokenizer, TokenPolicy(generate, chat, **(common | settings))


def test_an_episode_is_one_row_though_its_text_would_encode_otherwise():
    spelled = [[*b] for b in (b"ls", b"cat")]
    tokenizer, made = policy(spelled, system_prompt="")
    letters = {ord(c): tokenizer.convert_tokens_to_ids(c) for c in "lscat"}
    answers = [[letters[code] for code in word] for word in spelled]
    tokenizer, made = policy(answers, system_prompt="")
    actor = made.start(task=None, actions=get_format("bash"), seed=0)
    recorder, rows = TokenRecorder(), 0
    for observation, text in (("first", "ls"), ("second", "cat")):
        assert actor.act(observation) == text
        turn = recorder.turn(actor.sampled)
        assert turn.kept == rows  # all before it
        rows = len(actor.sampled.prompt_ids) + len(actor.sampled.completion_ids)
    shown = tokenizer.decode([*actor.sampled.prompt_ids, *actor.sampled.completion_ids])
    assert shown == (
        "<|im_start|>user\nfirst<|im_end|>\n<|im_start|>assistant\nls<|im_end|>\n<|im_start|>user\nsecond<|im_end|>\n"
        "<|im_start|>assistant\ncat"
    )


def test_a_full_context_ends_the_episode_and_is_not_cut():
    _, made = policy([[70], [71], [72]], context_tokens=200, system_prompt="")
    actor = made.start(task=None, actions=get_format("bash"), seed=0)
    actor.act("x" * 40)
    with pytest.raises(PolicyLimitError, match="leave no room in a context of 200"):
        actor.act("y" * 200)
    _, made = policy([[70], [71], [72]], completion_tokens=60, system_prompt="")
    actor = made.start(task=None, actions=get_format("bash"), seed=0)
    actor.act("x" * 100)
    with pytest.raises(PolicyLimitError, match="no room in 60 tokens after the first prompt"):
        actor.act("y" * 40)


def test_a_first_prompt_that_does_not_fit_is_a_fault_of_the_set_up():
    _, made = policy([[70]], context_tokens=50)
    with pytest.raises(ValueError, match="no room for 8 more in a context of 50"):
        made.start(task=None, actions=get_format("bash"), seed=0).act("x" * 60)
    with pytest.raises(ValueError, match="below context_tokens, got 8 and 8"):
        policy([], context_tokens=8)
    with pytest.raises(ValueError, match="completion_tokens must be max_new_tokens or more, got 3"):
        policy([], completion_tokens=3)
