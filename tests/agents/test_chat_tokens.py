"""Prompts continue the ids that were sampled, whatever a tokenizer would make of the text."""

import pytest

from gagar_env.agents.policies.chat_tokens import ChatTokens

EOS = 1


class LetterPairs:
    """A tokenizer with two ways to write a text: pairs of letters where it encodes, single ones where it samples."""

    eos_token, eos_token_id = "<end>", EOS

    def __init__(self, keeps=True):
        self.keeps = keeps
        self.names = {"<end>": EOS}

    def apply_chat_template(self, chat, *, tokenize, add_generation_prompt):
        assert not tokenize
        parts = []
        for number, message in enumerate(chat):
            old_answer = message["role"] == "assistant" and number < len(chat) - 1
            content = "..." if old_answer and not self.keeps else message["content"]
            parts.append(f"[{message['role']}]{content}<end>\n")
        return "".join(parts) + ("[assistant]" if add_generation_prompt else "")

    def __call__(self, text, *, add_special_tokens):
        assert not add_special_tokens
        ids = []
        for number, part in enumerate(text.split("<end>")):
            ids += [EOS] if number else []
            ids += [self.names.setdefault(part[i : i + 2], len(self.names) + 1) for i in range(0, len(part), 2)]
        return {"input_ids": ids}

    def text(self, ids):
        back = {number: name for name, number in self.names.items()}
        return "".join(back[i] for i in ids)


def letters(tokenizer, text):
    return [tokenizer.names.setdefault(c, len(tokenizer.names) + 1) for c in text]


@pytest.mark.parametrize("ended", [True, False])
def test_a_prompt_continues_what_was_sampled(ended):
    tokenizer = LetterPairs()
    tokens = ChatTokens(tokenizer)
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "fix it"}]
    for answer, read in (("lsx", "one file"), ("submit", "")):
        prompt = tokens.prompt(chat)
        assert tokenizer.text(prompt) == tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        sampled = letters(tokenizer, answer) + [EOS] * ended
        tokens.sampled(chat, answer, prompt, sampled)
        chat = [*chat, {"role": "assistant", "content": answer}, {"role": "user", "content": read}]
        longer = tokens.prompt(chat)
        assert longer[: len(prompt) + len(sampled)] == [*prompt, *sampled]
        whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert tokenizer.text(longer) == whole


def test_a_template_that_rewrites_earlier_answers_is_encoded_anew():
    tokenizer = LetterPairs(keeps=False)
    tokens = ChatTokens(tokenizer)
    chat = [{"role": "user", "content": "fix it"}]
    prompt = tokens.prompt(chat)
    tokens.sampled(chat, "ls", prompt, [*letters(tokenizer, "ls"), EOS])
    chat = [*chat, {"role": "assistant", "content": "ls"}, {"role": "user", "content": "a file"}]
    whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert tokenizer.text(tokens.prompt(chat)) == whole


def test_only_so_many_answers_are_remembered():
    tokenizer = LetterPairs()
    tokens = ChatTokens(tokenizer, remember=1)
    chats = [[{"role": "user", "content": text}] for text in ("one", "two")]
    for chat in chats:
        tokens.sampled(chat, "ls", tokens.prompt(chat), [*letters(tokenizer, "ls"), EOS])
    continued = [[*c, {"role": "assistant", "content": "ls"}, {"role": "user", "content": "ok"}] for c in chats]
    old = tokens.prompt(continued[0])
    assert tokenizer.text(old) == tokenizer.apply_chat_template(
        continued[0], tokenize=False, add_generation_prompt=True
    )
    single = letters(tokenizer, "l")[0]
    assert single not in old
    assert single in tokens.prompt(continued[1])


def test_an_answer_that_another_thread_pushes_out_ends_nothing():
    class Busy(LetterPairs):
        def apply_chat_template(self, chat, *, tokenize, add_generation_prompt):
            if not add_generation_prompt:  # when the answer has been found and is not read yet
                tokens.sampled([{"role": "user", "content": "another"}], "ls", [2], [EOS])
            return super().apply_chat_template(chat, tokenize=tokenize, add_generation_prompt=add_generation_prompt)

    tokenizer = Busy()
    tokens = ChatTokens(tokenizer, remember=1)
    chat = [{"role": "user", "content": "fix it"}]
    prompt = tokens.prompt(chat)
    sampled = [*letters(tokenizer, "ls"), EOS]
    tokens.sampled(chat, "ls", prompt, sampled)
    longer = tokens.prompt([*chat, {"role": "assistant", "content": "ls"}, {"role": "user", "content": "a file"}])
    assert longer[: len(prompt) + len(sampled)] == [*prompt, *sampled]
