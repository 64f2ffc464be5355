"""Finding tasks by words: in ids, titles, tags and statements, best first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gagar_env.tasks.task import Task

_WORD = re.compile(r"[^\W_]+")
_WEIGHTS = {"id": 6.0, "title": 4.0, "tags": 4.0, "statement": 1.0}
_PREFIX = 0.6
"""What a word counts that only begins with what was asked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """One task that a search found.

    Attributes:
        task: The task.
        score: Higher is better; comparable within one search.
        words: Which of the asked-for words it has.
    """

    task: Task
    score: float
    words: tuple[str, ...]


def search_tasks(words: str | Sequence[str], tasks: Iterable[Task]) -> list[Found]:
    """Tasks that have any of `words`, best first: those with more of them before those with fewer.

    Case and punctuation do not count; a word is also found as the beginning of a longer one. Rare words count more.

    Args:
        words: What to look for.
        tasks: Where.
    """
    text = words if isinstance(words, str) else " ".join(words)
    asked = tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    hits: list[tuple[Task, dict[str, float]]] = []
    count, with_word = 0, Counter[str]()
    for task in tasks:
        count += 1
        if found := _hits(task, asked):
            hits.append((task, found))
            with_word.update(found.keys())
    rarity = {word: math.log(1 + count / number) for word, number in with_word.items()}
    results = [
        Found(task, round(sum(value * rarity[word] for word, value in found.items()), 4), tuple(found))
        for task, found in hits
    ]
    return sorted(results, key=lambda one: (-len(one.words), -one.score, one.task.id))


def words_of(tasks: Iterable[Task]) -> list[str]:
    """All words of their ids, titles and tags, sorted: what a misspelt one may have meant."""
    texts = (" ".join((task.id, task.title, *task.tags)) for task in tasks)
    return sorted({word for text in texts for word in _WORD.findall(text.lower())})


def _hits(task: Task, asked: Sequence[str]) -> dict[str, float]:
    fields = {
        "id": task.id,
        "title": task.title,
        "tags": " ".join(task.tags),
        "statement": task.problem_statement,
    }
    found: dict[str, float] = {}
    for name, text in fields.items():
        have = Counter(_WORD.findall(text.lower()))
        for word in asked:
            whole = have.get(word, 0)
            longer = 0 if whole else sum(n for other, n in have.items() if len(word) > 1 and other.startswith(word))
            if whole or longer:
                value = _WEIGHTS[name] * (1 + math.log(whole or longer)) * (1.0 if whole else _PREFIX)
                found[word] = found.get(word, 0.0) + value
    return {word: found[word] for word in asked if word in found}
