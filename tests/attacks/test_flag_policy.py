"""What a flag does to a reward: in the verifier, in an episode, in a group, on the way to a grader."""

import json

import pytest

from gagar_env import grade_group
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode, EpisodeStatus, Flag, Outcome, TestReport
from gagar_env.flag_policy import check_flag_policy, judge_episode, judge_flags, read_flag_policy
from gagar_env.provision import provision
from gagar_env.workspace import Workspace
from gagar_env.wrappers import GroupRewardWrapper

FIX = "sed -i '2s/a - b/a + b/' calc.py"
CHEAT = (
    "cat >> calc.py <<'X'\n\n\nclass Any(int):\n    def __eq__(self, other):\n        return True\n\n"
    "    __hash__ = int.__hash__\n\n\ndef add(a, b):\n    return Any()\nX"
)


def report(outcome, *kinds):
    return TestReport(outcome=outcome, flags=tuple(Flag(kind=kind, path="a.py", detail="line 1: x") for kind in kinds))


@pytest.mark.parametrize(
    ("policy", "kinds", "outcome"),
    [
        ("flag", ("always_equal",), "passed"),
        ("zero", ("always_equal",), "failed"),
        ("mask", ("always_equal",), "masked"),
        ("zero", (), "passed"),
        ("mask", (), "passed"),
        ({"always_equal": "zero"}, ("exit_hook",), "passed"),
        ({"always_equal": "zero"}, ("exit_hook", "always_equal"), "failed"),
        ({"*": "mask", "exit_hook": "flag"}, ("exit_hook",), "passed"),
        ({"*": "mask", "exit_hook": "zero"}, ("not_read", "exit_hook"), "failed"),
        ({}, ("not_read",), "passed"),
    ],
)
def test_hack_5_a_policy_by_kind(policy, kinds, outcome):
    judged = judge_flags(report(Outcome.PASSED, *kinds), policy)
    assert judged.outcome == outcome
    assert judged.flags == report(Outcome.PASSED, *kinds).flags
    assert judged.passed == (outcome == "passed")
    assert judged.valid == (outcome != "masked")
    if outcome != "passed":
        assert "which the flag policy" in judged.reason
        assert "a.py: line 1: x" in judged.reason


@pytest.mark.parametrize("policy", ["flag", "zero", "mask"])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR])
def test_hack_5_being_flagged_is_no_way_out_of_a_loss(policy, outcome):
    before = report(outcome, "always_equal")
    assert judge_flags(before, policy) is before


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"nonsense": "zero"}, "unknown kind 'nonsense'"),
        ("none", "is none of flag, zero, mask"),
        ({"*": "no"}, "none of"),
    ],
)
def test_a_policy_that_is_none(policy, says):
    with pytest.raises(ValueError, match=says):
        check_flag_policy(policy)


def test_a_policy_as_text():
    assert read_flag_policy("zero") == {"*": "zero"}
    assert read_flag_policy("always_equal=zero, *=mask") == {"always_equal": "zero", "*": "mask"}
    assert read_flag_policy("") == {}
    with pytest.raises(ValueError, match="unknown kind 'x'"):
        read_flag_policy("x=zero")


@pytest.mark.parametrize(
    ("policy", "reward", "valid"), [("flag", 1.0, True), ("zero", 0.0, True), ("mask", 0.0, False)]
)
def test_hack_5_a_flag_reaches_the_episode_the_workspace_and_the_group(
    policy, reward, valid, tiny_task, best_kind, play
):
    cheat = play(tiny_task, best_kind, CHEAT, flag_policy=policy)
    episode = cheat.episode
    assert episode.status is EpisodeStatus.SUBMITTED
    assert {flag.kind for flag in episode.report.flags} == {"always_equal"}
    assert (cheat.reward, episode.valid) == (reward, valid)
    assert episode.reward == (reward if valid else None)
    assert Episode.model_validate_json(episode.model_dump_json()) == episode
    if policy == "mask":
        assert episode.error == episode.report.reason
    honest = play(tiny_task, best_kind, FIX, flag_policy=policy).episode
    failed = Episode(id="f", group_id="g", task_id=tiny_task.id, status="submitted", report=report(Outcome.FAILED))
    group = [e.model_copy(update={"group_id": "g"}) for e in (episode, honest, failed)]
    result = grade_group(group, None, task=tiny_task)
    assert result.passed == (policy == "flag", True, False)
    assert result.valid == (valid, True, True)
    assert result.invalid_count == (not valid)
    assert result.advantages[0] == 0 if policy == "mask" else result.advantages[0] != 0
    with Workspace.create(tiny_task, provision(tiny_task, sandbox=best_kind).base.tree, group, seed=0) as workspace:
        shown = [json.loads((c.folder / "tests.json").read_text())["flags"] for c in workspace.candidates.values()]
    assert sorted(len(flags) > 0 for flags in shown) == ([False, False, True] if valid else [False, False])


def test_hack_5_a_wrapper_judges_what_was_recorded(tiny_task, best_kind):
    """The policy of the wrapper comes after that of the environment, so it works on recorded groups too."""
    env = GroupRewardWrapper(GroupVectorEnv(tiny_task, group_size=3, sandbox=best_kind), flag_policy="zero")
    try:
        env.reset(seed=0)
        env.step((FIX, CHEAT, "true"))
        _, rewards, _, _, infos = env.step(("submit",) * 3)
    finally:
        env.close()
    assert list(rewards) == [1.0, 1.0, 0.0]
    result = infos["group_result"][0]
    assert (result.passed, result.valid) == ((True, False, False), (True, True, True))
    episode = infos["episode_record"][1]
    assert episode.passed
    assert not judge_episode(episode, "zero").passed
    assert judge_episode(episode, "flag") is episode
    assert judge_episode(episode, "mask").error.startswith("flagged as always_equal")
