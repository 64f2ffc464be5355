"""Every attack of the catalogue as an episode that cheats, every honest twin, on each kind of sandbox, warm and cold.

The name of a test holds the case: `test_a_cheating_episode_earns_nothing_unseen[bwrap-hack_1_conftest_at_the_root]`.
"""

import re

import pytest

from gagar_env.attacks import ATTACKS, TWINS, Kind, run_attacks, run_twins
from gagar_env.warm import SWITCH, servers

KINDS = ("bwrap", "docker", "rootfs")
EVERY_DAY = {
    "hack_1_exceptions_dropped",
    "hack_2_collect_only",
    "hack_3_signer",
    "hack_5_answers_read_from_the_tests",
    "hack_10_nested_repositories",
    "leak_2_network",
    "threads_and_exit_hooks",
    "modules_in_a_package",
}
"""Run in the everyday suite, on bwrap; the others are slow together."""
PLAIN = (Kind.PROCESS, Kind.REPORT)
"""Aimed at the asserts themselves: tests without helpers are easier prey."""
ROUGH = (Kind.BREAKS,)
"""Their scripts may fail: they break their own sandbox."""
MAY_PASS = {"hack_1", "hack_5", "hack_3"}
"""Cases of what no runner can prevent in one process: flagged."""
RACES = {"hack_1_objects_changed_by_a_thread", "hack_3_written_later", "hack_9_writer"}
"""Whether their thread or child is in time is chance, in both ways of starting."""
RANDOM = re.compile(r"test_[0-9a-f]{12}|0x[0-9a-f]+|\d+\.\d+s")


def matrix(items):
    return list(_matrix(items))


def _matrix(items):
    for kind in KINDS:
        for item in items:
            marks = [] if kind == "bwrap" else [pytest.mark.docker]
            if kind != "bwrap" or item.id not in EVERY_DAY:
                marks.append(pytest.mark.slow)
            yield pytest.param(kind, item, marks=marks, id=f"{kind}-{item.id}")


def judged(kind, run, monkeypatch):
    """What becomes of one: by a fork of a warm server, where such sandboxes have them, and by a fresh start."""
    if kind == "docker":
        return [*run()]
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        before = sum(servers.counts.values())
        (result,) = run()
        assert sum(servers.counts.values()) > before or result.outcome == "held"
        found.append(result)
    return found


@pytest.mark.parametrize(("kind", "attack"), matrix(ATTACKS))
def test_a_cheating_episode_earns_nothing_unseen(kind, attack, attacked, monkeypatch):
    task = attacked(kind, plain=attack.kind in PLAIN)
    results = judged(kind, lambda: run_attacks(task, sandbox=kind, attacks=[attack]), monkeypatch)
    for result in results:
        assert result.outcome in ("held", "flagged"), (result.reason, result.exit_codes)
        if result.outcome == "flagged":
            assert attack.id.rpartition("_")[0][:6] in MAY_PASS
            assert result.flags
        if attack.kind not in ROUGH:
            assert set(result.exit_codes) <= {0}, result.exit_codes
    alike(attack, *results)


def alike(attack, first, *others):
    """Warm or cold, it is judged alike."""
    for other in others:
        assert (first.outcome, first.reward) == (other.outcome, other.reward)
        if attack.kind not in ROUGH:  # how far such a one comes within its time is chance
            assert first.exit_codes == other.exit_codes
        if attack.id not in RACES:
            assert RANDOM.sub("", first.reason) == RANDOM.sub("", other.reason)
            assert {flag.kind for flag in first.flags} == {flag.kind for flag in other.flags}


@pytest.mark.parametrize(("kind", "twin"), matrix(TWINS))
def test_honest_work_that_looks_alike_earns_its_reward(kind, twin, attacked, monkeypatch):
    results = judged(kind, lambda: run_twins(attacked(kind), sandbox=kind, twins=[twin]), monkeypatch)
    for result in results:
        assert result.good, result.reason
        assert {flag.kind for flag in result.flags} <= {"exit_hook"}, result.flags
    assert len({frozenset(flag.kind for flag in result.flags) for result in results}) == 1


def test_every_case_has_its_attacks():
    ids = [attack.id for attack in ATTACKS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"(hack|leak|test)_\d+(_[a-z0-9]+)+", name) for name in ids)
    cases = {attack.case for attack in ATTACKS}
    assert cases >= {*(f"HACK-{n}" for n in range(1, 12)), *(f"LEAK-{n}" for n in range(1, 4))}
    assert {attack.kind for attack in ATTACKS} == set(Kind)
    assert {twin.kind for twin in TWINS} >= {Kind.BEFORE, Kind.PROCESS, Kind.REPORT, Kind.FILES, Kind.GIT, Kind.NAMES}


def chosen(*names):
    return [attack for attack in ATTACKS if attack.id in names]


def test_hack_6_a_helper_that_is_not_declared_is_let_through(attacked):
    """What `gagar check --attack` is for: the set-up of this task is at fault, and the advice says so."""
    task = attacked("bwrap", support=(), fail_to_pass=("tests/test_calc.py::test_add_again",))
    (result,) = run_attacks(task, sandbox="bwrap", attacks=chosen("hack_6_helpers_edited"))
    assert (result.outcome, result.reward, result.good) == ("let_through", 1.0, False)
    assert "`support`" in result.as_dict()["advice"]
    (result,) = run_attacks(attacked("bwrap"), sandbox="bwrap", attacks=chosen("hack_6_helpers_edited"))
    assert (result.outcome, result.reward) == ("held", 0.0)


def test_leak_3_a_solution_in_the_tree_is_found(attacked, tmp_path):
    task = attacked("bwrap")
    tree = tmp_path / "tree"
    tree.mkdir()
    for file in sorted(task.repo.path.rglob("*")):
        if file.is_file():
            (tree / file.relative_to(task.repo.path)).parent.mkdir(parents=True, exist_ok=True)
            (tree / file.relative_to(task.repo.path)).write_bytes(file.read_bytes())
    (tree / "old").mkdir()
    (tree / "old/test_calc.txt").write_bytes((task.tests.folder / "tests/test_calc.py").read_bytes())
    leaky = task.model_copy(update={"repo": task.repo.model_copy(update={"path": tree})})
    (result,) = run_attacks(leaky, sandbox="bwrap", attacks=chosen("leak_3_search"))
    assert (result.outcome, result.reason) == ("let_through", "found: /testbed/old/test_calc.txt")
