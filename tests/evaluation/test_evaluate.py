"""Evaluations of real episodes: streamed, resumed, and not ended by what goes wrong in one."""

import threading

import pytest

from gagar_env.errors import GagarError, TaskError
from gagar_env.evaluation import EpisodeRow, evaluate, report_of
from gagar_env.evaluation.rows_file import RowsFile, read_rows

FIX = "sed -i 's/a - b/a + b/' calc.py"


class BySeed:
    """Even seeds solve the calculator, odd ones do not; a seed of `faults` breaks down that often."""

    name = "by-seed"

    def __init__(self, faults=None):
        self.faults = dict(faults or {})
        self.seeds = []
        self.lock = threading.Lock()

    def start(self, *, task, actions, seed):
        with self.lock:
            self.seeds.append(seed)
            if self.faults.get(seed, 0) > 0:
                self.faults[seed] -= 1
                raise RuntimeError(f"no answer for {seed}")
        script = [actions.bash(FIX if seed % 2 == 0 else "true"), actions.submit()]

        class Actor:
            def act(self, observation):
                self.usage = (10, 3)
                return script.pop(0)

        return Actor()


@pytest.mark.slow
def test_episodes_are_streamed_retried_and_not_run_twice(tiny_task, tmp_path) -> None:
    missing = tiny_task.repo.model_copy(update={"path": tmp_path / "nowhere"})
    tasks = [tiny_task.model_copy(update={"id": "lost", "repo": missing}), tiny_task]
    out, told, policy = tmp_path / "run" / "rows.jsonl", [], BySeed({4: 1, 5: 9})
    settings = {"samples": 3, "k": (1, 2), "seed": 3, "workers": 2, "sandbox": "process", "out": out}
    report = evaluate(policy, tasks, **settings, on_episode=lambda episode, row: told.append((episode, row)))

    lost, tiny = report.tasks
    assert not lost.has_result
    assert "nowhere" in lost.reason
    assert (tiny.episodes, tiny.passed, tiny.invalid, tiny.retried) == (2, 1, 1, 2)
    assert tiny.pass_at[1].value == 0.5
    assert tiny.quality["lines"].value == 2
    assert tiny.quality["completion_tokens"].value == 6
    assert report.overall.no_result == ("lost",)
    assert list(report.faults) == ["policy by-seed: RuntimeError: no answer for 5"]
    assert sorted(policy.seeds) == [3, 4, 4, 5, 5]
    assert len(told) == 5
    assert [row for _, row in told] == read_rows(out)
    assert all(episode.id == row.episode_id for episode, row in told)

    nobody = BySeed()
    again = evaluate(nobody, tasks[1:], **settings)
    assert nobody.seeds == []
    assert again.tasks == (tiny,)
    assert report_of(read_rows(out), tasks, k=(1, 2), seed=3).task("tiny-add") == tiny

    whole = out.read_bytes()
    out.write_bytes(whole[: whole[:-1].rindex(b"\n") + 40])  # killed while it wrote the last row
    fewer = {row.sample for row in read_rows(out) if row.valid}
    goes_on = BySeed()
    third = evaluate(goes_on, tasks[1:], **{**settings, "samples": 4, "retries": 3})
    assert set(goes_on.seeds) == {3 + n for n in range(4) if n not in fewer}
    assert (third.tasks[0].episodes, third.tasks[0].passed) == (4, 2)

    with pytest.raises(GagarError, match=r"made with temperature=None, not 0\.5"):
        evaluate(BySeed(), tasks[1:], **settings, made_with={"temperature": 0.5})

    changed = tiny_task.model_copy(update={"tests": tiny_task.tests.model_copy(update={"timeout_s": 61})})
    fresh = BySeed()
    evaluate(fresh, [changed], **{**settings, "samples": 1, "k": (1,)})
    assert fresh.seeds == [3]
    with pytest.raises(TaskError, match="nowhere"):
        evaluate(policy, tasks[:1], **{**settings, "out": None})


@pytest.mark.slow
def test_faults_that_leave_no_task_enough_for_a_k_leave_that_k_out(tiny_task) -> None:
    settings = {"samples": 2, "k": (1, 2), "workers": 2, "retries": 0, "sandbox": "process"}
    report = evaluate(BySeed({1: 1}), [tiny_task], **settings)
    assert report.overall.pass_at[1].value == 1.0
    assert report.overall.pass_at[2] is None


@pytest.mark.slow
def test_an_interrupt_leaves_what_was_done(tiny_task, tmp_path) -> None:
    out = tmp_path / "rows.jsonl"
    settings = {"samples": 3, "k": (1,), "workers": 1, "sandbox": "process", "out": out}

    def stop(episode, row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(BySeed(), [tiny_task], **settings, on_episode=stop)
    assert len(read_rows(out)) == 1
    policy = BySeed()
    assert evaluate(policy, [tiny_task], **settings).overall.episodes == 3
    assert policy.seeds == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": (9,)}, "pass@9 cannot be estimated from 8 samples"),
        ({"k": (0,)}, "k must be numbers of 1 or more"),
        ({"samples": 0}, "samples=0"),
        ({"workers": 0}, "workers=0"),
        ({"retries": -1}, "retries=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"tasks": []}, "evaluate needs tasks"),
        ({"tasks": ["ledger-rounding"] * 2}, "got 2 of 1 different"),
        ({"tasks": ["ledger-roundin"]}, "ledger-rounding"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(arguments, message) -> None:
    policy = BySeed()
    with pytest.raises(ValueError, match=message):
        evaluate(policy, **{"tasks": ["ledger-rounding"], **arguments})
    with pytest.raises(TypeError, match="policy must have"):
        evaluate("sample", ["ledger-rounding"])
    assert policy.seeds == []


def row(sample):
    return EpisodeRow(task_id="t", sample=sample, status="submitted", valid=True, passed=True)


def test_a_file_of_something_else_is_left_alone(tmp_path) -> None:
    path, settings = tmp_path / "rows.jsonl", {"policy": "p", "seed": 0}
    with RowsFile.opened(path, settings) as file:
        file.add(row(0))
        file.add(row(1))
        with pytest.raises(GagarError, match="another evaluation writes"), RowsFile.opened(path, settings):
            pass
    with RowsFile.opened(path, settings) as file:
        assert file.rows == [row(0), row(1)]
    with pytest.raises(GagarError, match="made with seed=0, not 1"), RowsFile.opened(path, {"policy": "p", "seed": 1}):
        pass
    whole = path.read_bytes()
    for torn in range(1, whole.index(b"\n")):  # killed while it wrote the first line
        path.write_bytes(whole[:torn])
        with RowsFile.opened(path, settings) as file:
            assert file.rows == []
    for other in (b"notes\n", b"notes", b'{"task_id": "x"}\n', b'{"task_id": "x"}'):
        path.write_bytes(other)
        with pytest.raises(GagarError, match="line 1 is not of an evaluation"), RowsFile.opened(path, settings):
            pass
        assert path.read_bytes() == other
    path.write_bytes(whole + b"notes\n")
    with pytest.raises(GagarError, match="line 4 is no row"), RowsFile.opened(path, settings):
        pass
    with pytest.raises(GagarError, match="cannot be read"):
        read_rows(tmp_path / "nobody.jsonl")
