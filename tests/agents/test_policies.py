import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from gagar_env.actions import Submit, get_format
from gagar_env.agents.policies import (
    BatchedPolicy,
    NoopPolicy,
    ReferencePolicy,
    ReplayPolicy,
    SamplingPolicy,
    get_policy,
)
from gagar_env.agents.policies.script import apply_command
from gagar_env.bases import prepare_base
from gagar_env.changes import FileState
from gagar_env.errors import GagarError, TaskError
from gagar_env.patch import make_patch, read_patch
from gagar_env.rollout import Policy
from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task

NAME = "ledger-rounding"


@pytest.fixture
def task() -> Task:
    return load_task(NAME)


@pytest.fixture(params=["bash", "tools"])
def actions(request):
    return get_format(request.param)


def script(policy, task, actions, seed=0, limit=40):
    """All actions up to and with the submission."""
    actor = policy.start(task=task, actions=actions, seed=seed)
    taken = []
    while len(taken) < limit:
        taken.append(actor.act("whatever"))
        if isinstance(actions.parse(taken[-1]), Submit):
            return taken
    raise AssertionError("it does not submit")


@pytest.fixture
def play(task):
    """Runs actions in a real sandbox and gives the change that is left, and the results."""

    def run(taken, actions, kind="process"):
        if reason := why_unavailable(kind):
            pytest.skip(f"{kind} does not work here: {reason}")
        sandbox = open_sandbox(kind, SandboxSpec(tree=prepare_base(task).tree))
        try:
            parsed = [actions.parse(text) for text in taken]
            results = [
                action.perform(sandbox, timeout_s=30, max_output_bytes=10_000)
                for action in parsed
                if not isinstance(action, Submit)
            ]
            return dict(sandbox.capture().changes), results
        finally:
            sandbox.close()

    return run


def expected(task, patch):
    return read_patch(prepare_base(task).tree, patch)


def test_noop_submits_at_once(task, actions):
    assert script(NoopPolicy(), task, actions) == [actions.submit()]


@pytest.mark.parametrize("kind", ["process", "bwrap"])
def test_reference_leaves_the_reference_patch(task, actions, play, kind):
    taken = script(ReferencePolicy(), task, actions)
    assert len(taken) == 2
    changes, results = play(taken, actions, kind)
    assert [r.exit_code for r in results] == [0], results
    assert changes == expected(task, task.solution_patch)


def test_reference_needs_a_reference(task, actions):
    with pytest.raises(TaskError, match="no reference patch"):
        ReferencePolicy().start(task=task.model_copy(update={"solution_patch": b""}), actions=actions, seed=0)


ODD = {
    "b.bin": FileState(bytes(range(256))),
    "crlf.txt": FileState(b"one\r\ntwo\r\n"),
    "latin.txt": FileState("caf\u00e9\n".encode("latin-1")),
    "doc.md": FileState(b"```bash\nEND_OF_PATCH\n$HOME `id` \\n 'x'\n```\nno newline at the end"),
    "run.sh": FileState(b"#!/bin/sh\n", "100755"),
    "trailing.txt": FileState(b"blanks   \n\t\n\n\n"),
    "sp ace/\u00fc.txt": FileState("\U0001f600\n".encode()),
}


@pytest.mark.parametrize(
    "names",
    [list(ODD), *([name] for name in ODD)],
    ids=lambda names: f"{len(names)}-{names[0]!a}",
)
def test_any_patch_survives_the_way_through_an_action(task, actions, play, names):
    changes = {name: ODD[name] for name in names}
    patch = make_patch(prepare_base(task).tree, changes)
    left, results = play([actions.bash(apply_command(patch))], actions)
    assert results[0].exit_code == 0, results[0].output
    assert left == changes


def test_an_empty_patch_is_no_command():
    assert apply_command(b"") == apply_command(b"\n") == ""


def test_replay_plays_actions_and_submits(task, actions):
    taken = [actions.bash("ls"), actions.bash("pwd")]
    assert script(ReplayPolicy(taken), task, actions) == [*taken, actions.submit()]


def test_replay_from_files(task, actions, play, tmp_path):
    patch = task.solution_patch.decode()
    rows = [
        {"task": NAME, "actions": [actions.bash("ls")]},
        {"task": NAME, "patch": patch},
        {"instance_id": NAME, "model_patch": patch, "model_name_or_path": "m"},
        {"instance_id": NAME, "model_patch": None},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    policy = ReplayPolicy.from_file(file)
    assert [len(script(policy, task, actions, seed=n)) for n in range(5)] == [2, 2, 2, 1, 2]
    changes, _ = play(script(policy, task, actions, seed=2), actions)
    assert changes == expected(task, task.solution_patch)
    with pytest.raises(TaskError, match=r"nothing is recorded for task 'ledger-rundung'.*did you mean"):
        policy.start(task=task.model_copy(update={"id": "ledger-rundung"}), actions=actions, seed=0)


@pytest.mark.parametrize("shape", ["list", "by task"])
def test_replay_of_one_json_file(task, actions, tmp_path, shape):
    row = {"instance_id": NAME, "model_patch": task.solution_patch.decode()}
    file = tmp_path / "preds.json"
    file.write_text(json.dumps([row] if shape == "list" else {NAME: {"model_patch": row["model_patch"]}}))
    assert len(script(ReplayPolicy.from_file(file), task, actions)) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no row"),
        ("{", "line 1: not valid JSON"),
        ('{"task": "a", "actions": []}\n[1]', "line 2: must be a JSON object"),
        ('{"actions": []}', "needs the task's id"),
        ('{"task": "a"}', "needs 'actions'"),
        ('{"task": "a", "actions": [1]}', "needs 'actions'"),
        ('{"task": "a", "patch": 5}', "patch: must be a text"),
        (b"\xff", "not valid UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_broken_replay_file_is_one_line(tmp_path, text, words):
    file = tmp_path / "rows.jsonl"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TaskError, match=words) as caught:
        ReplayPolicy.from_file(file)
    assert "\n" not in str(caught.value)
    assert "rows.jsonl" in str(caught.value)


def test_sampling_is_seeded_and_its_episodes_differ(task, actions):
    policy = SamplingPolicy()
    runs = [script(policy, task, actions, seed=seed) for seed in range(24)]
    assert runs == [script(policy, task, actions, seed=seed) for seed in range(24)]
    assert len({len(run) for run in runs}) >= 4
    assert all(len(run) >= 3 for run in runs)


@pytest.mark.parametrize("kind", ["clean", "sloppy", "wrong"])
def test_sampling_leaves_a_solution_of_the_kind_that_was_asked_for(task, play, kind):
    actions = get_format("bash")
    known = [expected(task, s.patch) for s in task.solutions if s.kind == kind]
    known += [expected(task, task.solution_patch)] if kind == "clean" else []
    for seed in range(4):
        changes, results = play(script(SamplingPolicy({kind: 1}), task, actions, seed=seed), actions)
        assert changes in known
        assert all(not r.timed_out for r in results)


def test_sampling_draws_by_weight(task):
    actions = get_format("bash")
    half = SamplingPolicy({"clean": 1, "wrong": 1})
    wrong = {s.patch.decode() for s in task.solutions if s.kind == "wrong"}
    drawn = [any(p in text for p in wrong for text in script(half, task, actions, seed=n)) for n in range(60)]
    assert 15 <= sum(drawn) <= 45


@pytest.mark.parametrize("weights", [{"good": 1}, {"clean": -1}, {"clean": 0}, {}, {"clean": float("nan")}])
def test_sampling_refuses_weights_that_make_no_sense(weights):
    with pytest.raises(ValueError, match="weights"):
        SamplingPolicy(weights)


def test_sampling_needs_something_to_draw(task, actions):
    bare = task.model_copy(update={"solutions": ()})
    assert len(script(SamplingPolicy(), bare, actions)) >= 3
    with pytest.raises(TaskError, match="wanted: sloppy"):
        SamplingPolicy({"sloppy": 1}).start(task=bare, actions=actions, seed=0)


def test_get_policy(tmp_path):
    for name in ("noop", "reference", "sample"):
        policy = get_policy(name)
        assert policy.name == name
        assert isinstance(policy, Policy)
    assert get_policy("gagar_env.agents.policies.noop:NoopPolicy").name == "noop"
    file = tmp_path / "r.jsonl"
    file.write_text('{"task": "a", "actions": []}\n')
    assert get_policy("replay", file=file).name == "replay"


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("referense", None, "did you mean 'reference'"),
        ("replay", None, "needs a file"),
        ("noop", "x.jsonl", "takes no file"),
        ("gagar_env.agents.policies.noop:NoopPolicy", "x.jsonl", "takes no file"),
        ("json:loads", None, "cannot be made: TypeError: loads"),
        ("broken_module:Policy", None, "cannot be imported: SyntaxError"),
    ],
)
def test_get_policy_says_what_is_wrong(name, file, words, tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("class Policy(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GagarError, match=words) as caught:
        get_policy(name, file=file)
    assert "\n" not in str(caught.value)


def test_numbers_for_sampling_belong_to_episode_and_turn(task, actions):
    """Whatever the batches are, an answer is drawn with the same number; no two answers share one."""
    asked = []

    def generate(chats, seeds):
        asked.extend((chat[-1]["content"], seed) for chat, seed in zip(chats, seeds, strict=True))
        return ["ls"] * len(chats)

    for size in (1, 3):
        policy = BatchedPolicy(generate, max_batch=size, max_wait_s=0.01, seeded=True)
        actors = [policy.start(task=task, actions=actions, seed=seed) for seed in (0, 1, 5)]
        with ThreadPoolExecutor(3) as pool:
            for turn in range(2):
                list(pool.map(lambda pair, turn=turn: pair[1].act(f"{pair[0]}, {turn}"), enumerate(actors)))
    first, again = dict(asked[:6]), dict(asked[6:])
    assert first == again
    assert len(set(first.values())) == 6
    assert all(0 <= seed < 2**63 for seed in first.values())
