"""The report on folders whose answer is known."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from claims import CONFIRMED, NOT, OPPOSITE, UNTESTABLE, check_claims
from made_runs import evaluated, row, write_run
from report import summarise, write_page
from rundata import read_experiment

SEEDS = range(5)
NOISE = (0.0, 0.01, -0.01, 0.02, -0.02)
"""Of the seeds, the same in every arm: paired differences are free of it."""


def steps(middle, size):
    """Pass rates and gradient norms that go up and down by `size` around `middle`."""
    return [{"pass_rate": 0.5 + size * (-1) ** n, "grad_norm": middle * (1 + size * (-1) ** n)} for n in range(20)]


def write_arm(out, arm, *, end, size=0.1, seeds=SEEDS, jitter=0.0, noise=1.0, more=None, change=0.0):
    for seed in seeds:
        wobble = noise * NOISE[seed] + jitter * (-1) ** seed
        final = {name: value + wobble * (20 if name in ("turns", "tokens") else 1) for name, value in end.items()}
        values = [{**step, "sum_after": 2.0 + change, **(more or {})} for step in steps(1.0, size)]
        write_run(out / arm / f"seed{seed}", evaluated(end=final, steps=values))


GRPO = {"pass_rate": 0.7, "distance": 0.4, "out_of_scope_lines": 3.0, "regressions": 0.8, "turns": 8.0, "tokens": 400.0}
BETTER = {
    "pass_rate": 0.7,
    "distance": 0.2,
    "out_of_scope_lines": 1.0,
    "regressions": 0.9,
    "turns": 6.0,
    "tokens": 300.0,
}


@pytest.fixture
def helpful(tmp_path):
    """GAGAR does what it claims; the penalty costs pass rate and is less steady."""
    write_arm(tmp_path, "grpo", end=GRPO, jitter=0.001)
    write_arm(tmp_path, "gagar", end=BETTER)
    write_arm(tmp_path, "penalty", end={**BETTER, "pass_rate": 0.4}, size=0.3, noise=8, change=-1.0)
    (tmp_path / "config.json").write_text(json.dumps({"machine": "2 cores", "settings": {"lr": 0.1, "out": "/x"}}))
    return tmp_path


def verdicts(out):
    return {claim.text: claim.verdict for claim in check_claims(read_experiment(out))}


def test_all_claims_can_be_confirmed(helpful):
    found = verdicts(helpful)
    assert found.pop("Failing episodes are untouched") == UNTESTABLE
    assert set(found.values()) == {CONFIRMED}, found
    assert len(found) == 15


def test_all_claims_can_fail(tmp_path):
    write_arm(tmp_path, "grpo", end=BETTER, jitter=0.001)
    worse = {**GRPO, "pass_rate": 0.4}
    write_arm(tmp_path, "gagar", end=worse, size=0.3, noise=8, change=0.5, more={"failing_change": 0.1})
    write_arm(tmp_path, "penalty", end={**BETTER, "pass_rate": 0.9})
    found = verdicts(tmp_path)
    assert set(found.values()) <= {NOT, OPPOSITE}, found
    assert found["Passing solutions come closer to the clean ones"] == OPPOSITE
    assert found["A quality penalty costs pass rate"] == OPPOSITE
    assert found["The sum of advantages over passing episodes is kept"] == NOT


def test_no_difference_confirms_no_direction(tmp_path):
    for arm in ("grpo", "gagar", "penalty"):
        write_arm(tmp_path, arm, end=GRPO)
    found = verdicts(tmp_path)
    assert found["Passing solutions come closer to the clean ones"] == NOT
    assert found["The pass rate is no lower than GRPO's"] == CONFIRMED
    assert found["Training is more stable than the penalty's from step to step (gradient norm)"] == NOT


@pytest.mark.parametrize("seeds", [2, 3])
def test_a_spread_of_few_seeds_is_not_judged(tmp_path, seeds):
    """Two deviations from their own mean are equal: the interval of a difference would have no width."""
    for arm, noise in (("gagar", 1.0), ("grpo", 9.0), ("penalty", 5.0)):
        write_arm(tmp_path, arm, end=GRPO, seeds=range(seeds), noise=noise)
    found = {text: verdict for text, verdict in verdicts(tmp_path).items() if text.startswith("Seeds end")}
    assert list(found.values()) == [UNTESTABLE] * 2


def test_numbers_of_the_summary(helpful):
    found = summarise(read_experiment(helpful))
    distance = found["arms"]["gagar"]["distance"]
    half = 2.7764 * (0.001 / 4) ** 0.5 / 5**0.5  # the deviations of the seeds have a sum of squares of 0.001
    assert distance["mean"] == pytest.approx(0.2)
    assert distance["high"] - distance["mean"] == pytest.approx(half, abs=1e-6)
    paired = found["differences"]["gagar-grpo"]["distance"]
    assert paired["mean"] == pytest.approx(-0.2 - 0.001 / 5)
    assert found["arms"]["penalty"]["pass_rate"]["mean"] == pytest.approx(0.4)
    # +-size around the middle: neighbours differ by twice the size, half the mean square of that is twice its square
    assert found["arms"]["gagar"]["grad_norm_variance"]["mean"] == pytest.approx(2 * 0.1**2)
    assert found["arms"]["grpo"]["turns_growth"]["mean"] == pytest.approx(8.0 - 6.0 + 20 * 0.001 / 5)
    json.dumps(found, allow_nan=False)


@pytest.mark.slow
def test_page(helpful, tmp_path):
    samples = {"before": {"a-b": {"patch": "+```\n+old\n", "passed": False}}}
    samples["after"] = {"a-b": {"patch": "+new\n" * 100, "passed": True}}
    (helpful / "gagar/seed0/samples.json").write_text(json.dumps(samples))
    for value, distance in ((0.5, 0.4), (0.75, 0.3), (1, 0.2)):
        for seed in SEEDS:
            end = {**GRPO, "distance": distance + NOISE[seed]}
            write_run(helpful / f"sweep/grader_accuracy={value:g}/seed{seed}", evaluated(end=end))
    docs = tmp_path / "site/docs"
    docs.mkdir(parents=True)
    (docs.parent / "README.md").write_text("# x\n\n<!-- experiment -->\nold\n<!-- /experiment -->\n\nend\n")
    made = write_page(helpful, docs)
    page = (docs / "experiment.md").read_text()
    assert "From an accuracy of 0.75 on" in page
    assert "````diff\n+```\n+old\n````" in page
    assert "(30 more lines)" in page
    assert "| settings | lr=0.1 |" in page
    assert "/x" not in page
    assert "nan" not in page
    readme = (docs.parent / "README.md").read_text()
    assert made in readme
    assert readme.startswith("# x\n")
    assert readme.endswith("end\n")
    assert "old" not in readme
    for name in ("curves", "length", "quality-pass", "stability", "sweep-grader_accuracy"):
        assert f"(experiment/{name}.svg)" in page
        drawn = docs / f"experiment/{name}.svg"
        assert drawn.stat().st_size < 150_000
        text = "".join(ElementTree.parse(drawn).getroot().itertext())
        assert "nan" not in text
        assert "GRPO" in text
    (docs / "experiment.md").write_text(page.replace("<!-- notes -->\n", "<!-- notes -->\nby hand"))
    again = {path.name: path.read_bytes() for path in (docs / "experiment").iterdir()}
    write_page(helpful, docs)
    assert "by hand" in (docs / "experiment.md").read_text()
    assert again == {path.name: path.read_bytes() for path in (docs / "experiment").iterdir()}


@pytest.mark.slow
def test_broken_folder(tmp_path):
    """A torn last line, numbers that are none, a missing arm, one seed, a seed without metrics, a sweep of a word."""
    lines = [row(0, "eval"), row(1), row(2, pass_rate=None, distance=float("nan"), grad_norm=float("inf"), tokens="x")]
    lines.append(row(2, "eval"))
    write_run(tmp_path / "out/gagar/seed3", [*lines, '{"step": 3, "pass_ra'])
    (tmp_path / "out/gagar/seed4").mkdir()
    (tmp_path / "out/gagar/seed0").mkdir()
    (tmp_path / "out/gagar/seed0/metrics.jsonl").write_text("[1]\nnull\n")
    write_run(tmp_path / "out/sweep/strength=high/seed0", lines)
    write_run(tmp_path / "out/grpo/seed3", lines, {"after": None, "before": {"a-b": None}})
    experiment = read_experiment(tmp_path / "out")
    assert list(experiment.arms) == ["grpo", "gagar"]
    assert list(experiment.arms["gagar"]) == [3]
    assert [problem.partition(":")[0] for problem in sorted(experiment.problems)] == [
        "arm penalty",
        "config.json",
        "gagar/seed0/metrics.jsonl",
        "gagar/seed0/metrics.jsonl",
        "gagar/seed3/metrics.jsonl",
        "gagar/seed4/metrics.jsonl",
        "sweep/strength=high",
    ]
    (tmp_path / "docs").mkdir()
    made = write_page(tmp_path / "out", tmp_path / "docs")
    assert "one seed: no intervals" in made
    assert "(one seed)" in made
    page = (tmp_path / "docs/experiment.md").read_text()
    assert "One seed has no interval." in page
    assert "nan" not in page
    found = verdicts(tmp_path / "out")
    assert found["Passing solutions come closer to the clean ones"] == UNTESTABLE
    assert found["A quality penalty costs pass rate"] == UNTESTABLE
    assert found["The sum of advantages over passing episodes is kept"] == CONFIRMED


def test_steps_without_a_graded_group_confirm_nothing(tmp_path):
    for arm in ("grpo", "gagar", "penalty"):
        write_arm(tmp_path, arm, end=GRPO, more={"sum_before": 0.0, "sum_after": 0.0, "failing_change": 0.0})
    found = verdicts(tmp_path)
    assert found["The sum of advantages over passing episodes is kept"] == UNTESTABLE
    assert found["No credit is created"] == UNTESTABLE
    assert found["Failing episodes are untouched"] == UNTESTABLE


def test_failing_episodes_that_are_left_alone(tmp_path):
    write_arm(tmp_path, "gagar", end=GRPO, more={"failing_change": 0.0})
    assert verdicts(tmp_path)["Failing episodes are untouched"] == CONFIRMED


def test_without_evaluations_the_ends_are_tenths_of_the_steps(tmp_path):
    write_run(tmp_path / "grpo/seed0", [row(n, turns=float(n)) for n in range(20)])
    run = read_experiment(tmp_path).arms["grpo"][0]
    assert (run.start("turns"), run.end("turns"), run.growth("turns")) == (0.5, 18.5, 18.0)


def test_step_that_was_repeated_counts_as_last_written(tmp_path):
    write_run(tmp_path / "grpo/seed0", [row(1, turns=1.0), row(2, turns=2.0), row(1, turns=9.0)])
    assert read_experiment(tmp_path).arms["grpo"][0].column("turns") == [9.0, 2.0]


def test_pass_at_1_is_the_pass_rate_of_an_evaluation(tmp_path):
    write_run(tmp_path / "grpo/seed0", [row(0, "eval", pass_rate=0.1, pass_at_1=0.6)])
    run = read_experiment(tmp_path).arms["grpo"][0]
    assert run.end("pass_rate") == 0.6
    assert run.growth("pass_rate") is None


def test_a_run_that_has_not_ended_is_left_out(tmp_path):
    """Its last evaluation is that of the start."""
    write_run(tmp_path / "grpo/seed0", [row(0, "eval"), row(1), row(2, "eval")])
    write_run(tmp_path / "grpo/seed1", [row(0, "eval"), row(1), row(2)])
    experiment = read_experiment(tmp_path)
    assert list(experiment.arms["grpo"]) == [0]
    assert "grpo/seed1/metrics.jsonl: has not ended, left out" in experiment.problems


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no runs in .*expected <arm>/seed<k>/metrics.jsonl"):
        write_page(tmp_path, tmp_path)
