"""Runs to look at, made in moments, and what looks at them."""

import threading
import time
from contextlib import contextmanager

from gagar_env.agents.graders import CallableGrader
from gagar_env.episode import Episode, EpisodeStatus, Flag, Outcome, TestRecord, TestReport, Turn
from gagar_env.grading import Verdict
from gagar_env.group import grade_group
from gagar_env.store import RunFolder
from gagar_env.store.records import group_line
from gagar_env.view import Site, make_server, open_runs

PATCH = b"""diff --git a/calc.py b/calc.py
index 1111111..2222222 100644
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return %s
"""
NASTY = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><!--<svg/onload=window.pwned=1>"
    "--><style>*{display:none}</style>\u2028\u202egnp.exe\u001b[31mred\u001b[0m\u0000'\"onfocus=window.pwned=1 x"
)


def episode(name, group="g", *, task="tiny-calc", body=b"a + b", passed=True, turns=None, **more):
    """A member whose patch returns `body`."""
    report = TestReport(
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        reason="" if passed else "test_add failed",
        tests={
            "test_calc.py::test_add": TestRecord(
                status="passed" if passed else "failed", message="" if passed else "5 != 6"
            )
        },
        unmet=() if passed else ("test_calc.py::test_add",),
    )
    steps = turns or (
        Turn(action="cat calc.py", observation="def add", exit_code=0),
        Turn(action="submit", observation=""),
    )
    given = {
        "id": name,
        "group_id": group,
        "task_id": task,
        "status": "submitted",
        "report": report,
        "patch": PATCH % body,
    }
    return Episode(**{**given, "turns": steps, "first_observation": "Fix add.", **more})


def mixed_group(bench):
    """Two tiers, a copy, a failure, one cut, one masked; graded for real."""
    flag = Flag(kind="always_equal", path="calc.py", detail="__eq__ is always true")
    masked = TestReport(outcome=Outcome.MASKED, flags=(flag,), reason="flagged: always_equal")
    members = [
        episode("best", body=b"a + b"),
        episode("worse", body=b"sum([a, b])"),
        episode("copy", body=b"a + b"),
        episode("lost", body=b"a * b", passed=False),
        episode("late", report=None, status=EpisodeStatus.CUT, error="deadline of the group"),
        episode("flagged", report=masked, error="flagged: always_equal"),
    ]
    return members, grade_group(members, CallableGrader(by_size), task=bench.task, seed=3)


def by_size(workspace):
    sizes = {label: len(workspace.candidates[label].patch) for label in workspace.passing}
    order = sorted(sizes, key=sizes.get)
    reasons = {label: f"patch of {sizes[label]} bytes" for label in order}
    return Verdict(
        grader="size",
        outcome="ranked",
        tiers=tuple((label,) for label in order),
        reasons=reasons,
        evidence={label: {"amounts": {"bytes": sizes[label], "files": 1}} for label in order},
        turn_marks={order[0]: {1: "useful"}},
    )


def add_plain(run, number, results, **more):
    """A group without a grader; `results` says who passed, None who has no result."""
    members = [
        episode(f"p{number}-{at}", f"p{number}", passed=bool(passed), **more)
        if passed is not None
        else episode(
            f"p{number}-{at}", f"p{number}", status=EpisodeStatus.ERROR, error="the container died", report=None
        )
        for at, passed in enumerate(results)
    ]
    run.add(grade_group(members, None), members, attempt=number)


def add_many(run, result, count):
    """So many groups of the same numbers, without their episodes, in one write: a disk takes its time for each."""
    ids = result.episode_ids
    updates = ({"group_id": f"many-{n}", "episode_ids": tuple(f"{n}-{one}" for one in ids)} for n in range(count))
    lines = (group_line(result.model_copy(update=update), n, "") for n, update in enumerate(updates))
    with (run.path / "groups.jsonl").open("ab") as stream:
        stream.writelines(line + b"\n" for line in lines)


def write_nasty_run(path):
    """Everything that somebody else writes, hostile."""
    run = RunFolder.create(path, {NASTY: NASTY})
    name = NASTY.replace("/", "|").replace("\0", "").encode()
    patch = b"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n" % (
        name,
        NASTY.encode(),
    )
    flag = Flag(kind=NASTY, path=NASTY, detail=NASTY)
    test = TestRecord(status="passed", message=NASTY)
    turn = Turn(action=NASTY, observation=NASTY * 40)
    won = TestReport(outcome="passed", tests={NASTY: test}, flags=(flag,), output_tail=NASTY, ignored=(NASTY,))
    lost = TestReport(outcome="failed", reason=NASTY, tests={NASTY: test}, unmet=(NASTY,))
    common = {"group_id": NASTY, "task_id": NASTY, "status": "submitted", "policy": NASTY, "first_observation": NASTY}
    members = [
        Episode(
            id=f"{at}{NASTY}", patch=patch + b"%d\n" % at, report=won if at < 2 else lost, turns=(turn,) * 3, **common
        )
        for at in range(3)
    ]
    result = grade_group(members, None)
    labels = ("A", "B", "C")
    vote = {
        "labels": {"X11": "A"},
        "tiers": [["X11"]],
        "raw": NASTY,
        "looked_at": [NASTY],
        "failure": NASTY,
        "error": NASTY,
    }
    verdict = Verdict(
        grader=NASTY,
        outcome="ranked",
        tiers=(("A",), ("B",)),
        reasons=dict.fromkeys(labels, NASTY),
        evidence={label: {NASTY: [NASTY, {NASTY: NASTY}]} for label in labels},
        warnings=(NASTY,),
        error=NASTY,
        record={"votes": [vote], "model": NASTY},
    )
    update = {"labels": labels, "ranks": (0, 1, None), "verdict": verdict, "graded": True, "fallback": NASTY}
    run.add(result.model_copy(update=update), members)
    run.add_metrics(1, {NASTY: 1.0})


@contextmanager
def serving(path, site=None):
    """The address of a server for a folder; its site reads all episodes first."""
    site = site or Site(open_runs(path))
    site.read_episodes()
    with make_server(site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def until(page, script):
    """Wait for something to be true; Playwright's own way to do so evaluates text, which the page does not allow."""
    deadline = time.monotonic() + 60
    while not page.evaluate(script):
        assert time.monotonic() < deadline, script
        page.wait_for_timeout(50)


class Eyes:
    """Opens pages and notes whatever goes wrong in them."""

    def __init__(self, browser) -> None:
        self.browser = browser
        self.faults = []
        self.contexts = []

    def open(self, url, **options):
        context = self.browser.new_context(viewport={"width": 1400, "height": 1000}, **options)
        context.set_default_timeout(60_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(url)
        page.wait_for_selector("main h1, main .empty")
        return page
