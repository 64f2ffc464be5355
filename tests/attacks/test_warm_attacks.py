"""Every attack and every honest twin is judged by a fork of a warm server as by a fresh start."""

import re

import pytest

from gagar_env.attacks import ATTACKS, TWINS, Kind, run_attacks, run_twins
from gagar_env.warm import SWITCH, servers

EVERY_DAY = {"hack_3_signer"}
PLAIN = (Kind.PROCESS, Kind.REPORT)
RACES = {"hack_1_objects_changed_by_a_thread", "hack_3_written_later", "hack_9_writer"}
"""Whether their thread or child is in time is chance, in both ways of starting."""
RANDOM = re.compile(r"test_[0-9a-f]{12}|0x[0-9a-f]+|\d+\.\d+s")


def matrix(items):
    for kind in ("bwrap", "rootfs"):
        for item in items:
            marks = [] if kind == "bwrap" else [pytest.mark.docker]
            if kind != "bwrap" or item.id not in EVERY_DAY:
                marks.append(pytest.mark.slow)
            yield pytest.param(kind, item, marks=marks, id=f"{kind}-{item.id}")


def judged(run, monkeypatch):
    """What becomes of one, in a fork and by a fresh start."""
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        before = sum(servers.counts.values())
        (result,) = run()
        assert sum(servers.counts.values()) > before or result.outcome == "held"
        found.append(result)
    return found


@pytest.mark.parametrize(("kind", "attack"), list(matrix(ATTACKS)))
def test_an_attack_is_judged_alike(kind, attack, attacked, monkeypatch):
    task = attacked(kind, plain=attack.kind in PLAIN)
    warm, cold = judged(lambda: run_attacks(task, sandbox=kind, attacks=[attack]), monkeypatch)
    assert (warm.outcome, warm.reward) == (cold.outcome, cold.reward)
    if attack.kind is not Kind.BREAKS:  # how far such a one comes within its time is chance
        assert warm.exit_codes == cold.exit_codes
    if attack.id not in RACES:
        assert RANDOM.sub("", warm.reason) == RANDOM.sub("", cold.reason)
        assert {flag.kind for flag in warm.flags} == {flag.kind for flag in cold.flags}


@pytest.mark.parametrize(("kind", "twin"), list(matrix(TWINS)))
def test_honest_work_is_judged_alike(kind, twin, attacked, monkeypatch):
    warm, cold = judged(lambda: run_twins(attacked(kind), sandbox=kind, twins=[twin]), monkeypatch)
    assert warm.good
    assert cold.good
    assert {flag.kind for flag in warm.flags} == {flag.kind for flag in cold.flags}
