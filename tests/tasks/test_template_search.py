"""The template of a new task, and finding tasks by words."""

import pytest

from gagar_env.check import check_task
from gagar_env.errors import TaskError
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.heads import folder_head
from gagar_env.tasks.search import search_tasks
from gagar_env.tasks.template import new_task


def test_the_template_is_good_as_it_is(tmp_path, best_kind) -> None:
    task = load_task_folder(new_task("first-task", tmp_path / "tasks"))
    assert task.id == "first-task"
    result = check_task(task, sandbox=best_kind, solutions=True)
    assert result.problems == ()


def test_nothing_is_overwritten(tmp_path) -> None:
    folder = new_task("mine", tmp_path)
    (folder / "issue.md").write_text("mine now\n")
    with pytest.raises(TaskError, match="is there already, and nothing is overwritten"):
        new_task("mine", tmp_path)
    assert (folder / "issue.md").read_text() == "mine now\n"
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="is there already"):
        new_task("empty", tmp_path)
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "a b", "a/b", "-x", "ä"])
def test_names_that_are_none(tmp_path, name) -> None:
    with pytest.raises(TaskError, match="a name is letters, digits"):
        new_task(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TaskError, match="file/x: "):
        new_task("x", tmp_path / "file")


def test_heads_are_what_the_whole_file_says(tmp_path) -> None:
    folder = new_task("first-task", tmp_path)
    task, head = load_task_folder(folder), folder_head(folder)
    assert (head.id, head.title, head.tags) == (task.id, task.title, task.tags)
    (folder / "task.toml").write_text("id = \n")
    assert folder_head(folder).id == "first-task"


@pytest.fixture
def tasks(tiny_task):
    def task(task_id, title="", statement="x", tags=()):
        changed = {"id": task_id, "title": title, "problem_statement": statement, "tags": tags}
        return tiny_task.model_copy(update=changed)

    return [
        task("cache-a", "Threads miss the cache", "the cache is asked twice"),
        task("parser-b", "Commas in CSV", "the parser and the cache disagree", ("csv", "parser")),
        task("plain-c", statement="parsers everywhere"),
        task("unicode-d", statement="\u00dcberlauf der Warteschlange"),
    ]


def found(words, tasks):
    return [one.task.id for one in search_tasks(words, tasks)]


def test_ids_and_titles_before_statements(tasks) -> None:
    assert found("cache", tasks) == ["cache-a", "parser-b"]
    assert found("CSV", tasks) == ["parser-b"]


def test_more_of_the_words_first_and_beginnings_count(tasks) -> None:
    assert found(["cache", "parser"], tasks)[0] == "parser-b"
    assert found("parser", tasks) == ["parser-b", "plain-c"]
    assert found("pars", tasks) == ["parser-b", "plain-c"]


def test_words_of_any_language_and_none(tasks) -> None:
    assert found("\u00fcberlauf", tasks) == ["unicode-d"]
    assert found("nothing-like-it zzz", tasks) == []
    assert found("", tasks) == []
    assert found("(*[", tasks) == []
