"""The guard: what passes, what is refused and how it says so, for every table and every kind of configuration."""

import argparse
import enum
import pickle
from collections.abc import Mapping
from dataclasses import make_dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.errors import GagarError, PassthroughError, UnknownNameError
from gagar_env.integrations import check_passthrough
from gagar_env.integrations._rules import all_rules
from gagar_env.integrations._rules.trl import GRPO
from gagar_env.integrations.passthrough import learners

WRONG = "no value that any learner takes"
SOMETHING = "package.module.function"
"""For settings that must be set, to whatever it is."""
CASES = [(name, how) for name, rules in all_rules().items() for how in rules.hows if how not in rules.refused]
IDENTITY = {"scale_rewards": "none"}


def settled(rules, how):
    """All settings at a value that passes, and the ones that are in force with them."""
    values = {name: allowed[0] for rule in rules.rules for name, _, allowed in rule.when}
    mine = [rule for rule in rules.rules if how in rule.how]
    for rule in mine:
        values[rule.setting] = next(v for v in (*rule.allowed, rule.default, SOMETHING) if passes(rule, v))
    return values, mine


def holds(rule, values):
    return all(values.get(name, default) in allowed for name, default, allowed in rule.when)


def passes(rule, value):
    try:
        return value in rule.allowed or (rule.ok is not None and bool(rule.ok(value)))
    except (TypeError, ValueError):  # not of its kind
        return False


def nested(values):
    """Dotted names as mappings in mappings."""
    out = {}
    for name, value in values.items():
        *folders, last = name.split(".")
        home = out
        for folder in folders:
            home = home.setdefault(folder, {})
        home[last] = value
    return out


def objects(values):
    """The same as attributes of objects."""
    return SimpleNamespace(
        **{name: objects(value) if isinstance(value, Mapping) else value for name, value in nested(values).items()}
    )


@pytest.mark.parametrize("form", [dict, nested, objects], ids=["dotted", "nested", "objects"])
@pytest.mark.parametrize(("learner", "how"), CASES)
def test_every_table_passes_when_all_is_set(learner, how, form):
    values, mine = settled(all_rules()[learner], how)
    report = check_passthrough(form(values), learner, how=how)
    assert (report.learner, report.how) == (learner, how)
    assert set(report.values) == {rule.setting for rule in mine if holds(rule, values)}


@pytest.mark.parametrize(("learner", "how"), CASES)
def test_every_setting_of_every_table_is_named_when_it_is_wrong(learner, how):
    values, mine = settled(all_rules()[learner], how)
    for rule in mine:
        if not holds(rule, values):
            continue
        wrong = rule.default if passes(rule, WRONG) else WRONG
        with pytest.raises(PassthroughError) as caught:
            check_passthrough({**values, rule.setting: wrong}, learner, how=how)
        assert rule.setting in caught.value.settings
        assert f"{rule.setting}={wrong!r} {rule.why}: set {rule.setting}={rule.use}" in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("learner", "how"), CASES)
def test_what_is_missing_counts_with_the_learners_default(learner, how):
    values, mine = settled(all_rules()[learner], how)
    for rule in mine:
        if not holds(rule, values):
            continue
        without = {name: value for name, value in values.items() if name not in (rule.setting, *rule.also)}
        if passes(rule, rule.default):
            assert check_passthrough(without, learner, how=how).values[rule.setting] == rule.default
        else:
            with pytest.raises(PassthroughError, match="its default; it is not set") as caught:
                check_passthrough(without, learner, how=how)
            assert rule.setting in caught.value.settings


@pytest.mark.parametrize("learner", learners())
def test_tables_are_whole(learner):
    rules = all_rules()[learner]
    assert rules.hows
    assert rules.version.split()[-1][0].isdigit()
    assert rules.rules or rules.refused or rules.notes
    names = [rule.setting for rule in rules.rules]
    assert len(set(names)) == len(names)
    for rule in rules.rules:
        assert all((rule.use, rule.why, rule.how)), rule
        assert set(rule.how) & set(rules.hows), rule
        assert not rule.why.endswith("."), rule
    for how, why in rules.refused.items():
        with pytest.raises(PassthroughError, match=f"how='{how}'.*cannot pass"):
            check_passthrough({}, learner, how=how)
        assert why


@given(st.sets(st.sampled_from([rule.setting for rule in GRPO.rules if not rule.when])), st.booleans())
def test_the_error_names_exactly_what_is_wrong(wrong, reward):
    values = {"scale_rewards": "none", **dict.fromkeys(wrong, WRONG)}
    how = "reward" if reward else "advantage"
    expected = [r.setting for r in GRPO.rules if r.setting in wrong and how in r.how]
    if not expected:
        check_passthrough(values, "trl", how=how)
        return
    with pytest.raises(PassthroughError) as caught:
        check_passthrough(values, "trl", how=how)
    assert list(caught.value.settings) == expected
    assert f"{len(expected)} setting" in str(caught.value)


class Scale(enum.Enum):
    NONE = "none"
    GROUP = "group"


@pytest.mark.parametrize("value", ["none", "None", " none ", None, False, "false", np.bool_(False), Scale.NONE])
def test_values_are_compared_by_what_they_mean(value):
    check_passthrough({"scale_rewards": value}, "trl")


@pytest.mark.parametrize(
    "value", ["group", True, "true", np.bool_(True), Scale.GROUP, "", np.array([1, 2]), object(), 7]
)
def test_other_values_are_refused(value):
    with pytest.raises(PassthroughError, match="scale_rewards="):
        check_passthrough({"scale_rewards": value}, "trl")


@pytest.mark.parametrize(
    ("weights", "passes"),
    [
        *((weights, True) for weights in (None, [1.0], [1, 0.0], (0, 1.0), np.array([1.0, 0.0]))),
        *((weights, False) for weights in ([2.0], [1.0, 1.0], [1.0, -0.5], [], "x", 3)),
    ],
)
def test_one_reward_function_may_count(weights, passes):
    config = {**IDENTITY, "reward_weights": weights}
    if passes:
        check_passthrough(config, "trl")
    else:
        with pytest.raises(PassthroughError, match="reward_weights="):
            check_passthrough(config, "trl")


def test_a_misspelled_setting_is_pointed_at():
    with pytest.raises(PassthroughError, match=r"scale_rewards='group' \(its default.*\(there is 'scale_reward'\)"):
        check_passthrough({"scale_reward": "none"}, "trl")


def test_words_of_a_command_line_and_namespaces():
    words = ["train.py", "--scale-rewards", "none", "--multi_objective_aggregation=normalize_then_sum", "--beta", "0.1"]
    with pytest.raises(PassthroughError, match="multi_objective_aggregation='normalize_then_sum'") as caught:
        check_passthrough(words)
    assert caught.value.settings == ("multi_objective_aggregation",)
    with pytest.raises(PassthroughError, match=r"reward_weights=\(1.0, 0.5\) scales"):
        check_passthrough(["--reward-weights", "1.0", "0.5", "train.py", "--scale-rewards", "none"], "trl")
    openrlhf = ["--algo.advantage.estimator", "dr_grpo", "--algo.kl.init_coef", "0", "--reward.clip_range", "-10", "10"]
    check_passthrough(openrlhf)
    check_passthrough(["--reward-weights", "1.0", "0.0", "train.py", "--scale-rewards", "none", "train.py"], "trl")
    words[3] = "++multi_objective_aggregation=sum_then_normalize"
    check_passthrough([*words, "--no-mask-truncated-completions"])
    with pytest.raises(PassthroughError, match="mask_truncated_completions=True"):
        check_passthrough([*words, "--mask-truncated-completions"])
    check_passthrough(argparse.Namespace(scale_rewards="none"), "trl")
    check_passthrough(make_dataclass("Args", [("scale_rewards", str, "none")])(), "trl")


def test_a_rule_counts_only_where_another_setting_says_so():
    vllm = {**IDENTITY, "use_vllm": True}
    assert "vllm_importance_sampling_mode" not in check_passthrough(IDENTITY, "trl").values
    with pytest.raises(PassthroughError, match="vllm_importance_sampling_mode='sequence_mask'"):
        check_passthrough(vllm, "trl")
    check_passthrough({**vllm, "vllm_importance_sampling_correction": False}, "trl")
    check_passthrough({**vllm, "vllm_importance_sampling_mode": "token_truncate"}, "trl")


def test_mappings_that_refuse_to_be_read_count_as_missing():
    class Waiting(dict):
        def __getitem__(self, key):
            raise KeyError("mandatory value missing")

    with pytest.raises(PassthroughError, match="it is not set"):
        check_passthrough(Waiting(scale_rewards="none"), "trl")
    with pytest.raises(PassthroughError, match="it is not set"):
        check_passthrough({"scale_rewards": "???"}, "trl")


def test_the_hand_over_decides_what_matters():
    check_passthrough({"scale_rewards": "group"}, "trl", how="advantage")
    with pytest.raises(PassthroughError, match="off_policy_mask_threshold"):
        check_passthrough({"off_policy_mask_threshold": 0.1}, "trl", how="advantage")
    with pytest.raises(ValueError, match="trl_rloo takes reward, got how='advantage'"):
        check_passthrough({}, "trl_rloo", how="advantage")


def test_what_is_allowed_stays():
    report = check_passthrough({}, "trl", allow=["scale_rewards"])
    assert report.values["scale_rewards"] == "group"
    with pytest.raises(ValueError, match=r"no rule for scale_reward$"):
        check_passthrough({}, "trl", allow=["scale_reward"])


def test_unknown_learners():
    with pytest.raises(UnknownNameError, match=r"no rules for the learner 'tlr' \(known: .*sb3.*trl"):
        check_passthrough({}, "tlr")
    with pytest.raises(UnknownNameError, match="got a dict: pass learner="):
        check_passthrough({"lr": 1})
    with pytest.raises(UnknownNameError, match="got a NoneType"):
        check_passthrough(None)
    marks = [rules.marks[0] for rules in all_rules().values() if rules.marks][:2]
    with pytest.raises(UnknownNameError, match=r"it fits \w+ and \w+"):
        check_passthrough(dict.fromkeys(marks, 1))


@pytest.mark.parametrize(("learner", "mark"), [(n, mark) for n, rules in all_rules().items() for mark in rules.marks])
def test_a_mark_tells_the_learner(learner, mark):
    for form in ({mark: WRONG}, nested({mark: WRONG})):
        try:
            said = check_passthrough(form).learner
        except PassthroughError as error:
            said = str(error).partition(":")[0].partition(" ")[0]
        assert said == learner


def test_the_error_is_of_the_package_and_travels():
    with pytest.raises(PassthroughError) as caught:
        check_passthrough({}, "trl")
    assert isinstance(caught.value, (GagarError, ValueError))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.settings) == (str(caught.value), ("scale_rewards",))
