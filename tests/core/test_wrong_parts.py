"""What is no policy or no grader is refused before it costs a run."""

import pytest

from gagar_env.agents.graders import FallbackGrader, RuleGrader
from gagar_env.agents.policies import SamplingPolicy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode, TestReport
from gagar_env.group import grade_group
from gagar_env.pipeline import Pipeline
from gagar_env.rollout import run_group
from gagar_env.wrappers import GroupRewardWrapper


def group():
    reports = [TestReport(outcome=outcome) for outcome in ("passed", "passed", "failed")]
    known = {"group_id": "g", "task_id": "ledger-rounding", "status": "submitted"}
    return [Episode(id=f"e{n}", report=report, **known) for n, report in enumerate(reports)]


@pytest.mark.parametrize(
    ("grader", "message"),
    [
        ("rule", r"not its name: get_grader\('rule'\)"),
        (RuleGrader, "is the class RuleGrader: give one of it"),
        (object(), "must have `name` and `grade"),
    ],
)
def test_what_is_no_grader_is_refused_and_no_fallback(grader, message):
    """Else a whole run would train on plain advantages, with a warning for each group."""
    with pytest.raises(TypeError, match=message):
        grade_group(group(), grader)
    with pytest.raises(TypeError, match=message):
        Pipeline(SamplingPolicy(), grader)
    with pytest.raises(TypeError, match=message):
        FallbackGrader(grader)
    env = GroupVectorEnv("ledger-rounding", group_size=2)
    with pytest.raises(TypeError, match=message):
        GroupRewardWrapper(env, grader)
    env.close()


@pytest.mark.parametrize(("policy", "message"), [(SamplingPolicy, "the class SamplingPolicy"), ("sample", "must have")])
def test_what_is_no_policy_is_refused(policy, message):
    with pytest.raises(TypeError, match=message):
        run_group("ledger-rounding", policy)
    with pytest.raises(TypeError, match=message):
        Pipeline(policy)
    env = GroupRewardWrapper(GroupVectorEnv("ledger-rounding", group_size=2))
    with pytest.raises(TypeError, match=message):
        env.collect(policy, 1)
    env.close()
