"""A small task whose work can say anything, verified in a fork of a warm server and by a fresh start."""

import re

import pytest

from gagar_env.changes import FileState
from gagar_env.patch import make_patch
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.task import Environment, Image, RepoSource, Task, Tests
from gagar_env.verify import Verifier
from gagar_env.warm import servers

BASE = {"calc.py": "def answer():\n    return 0\n", "lib/deep.py": "X = 1\n", "data.txt": "a\n"}
HIDDEN = {
    "tests/test_calc.py": (
        "import calc\n\n\ndef test_answer():\n    assert calc.answer() == 42\n\n\n"
        "def test_again():\n    assert calc.answer() == 42\n"
    ),
    "tests/test_other.py": "def test_other():\n    import calc\n\n    assert calc\n",
}
REQUIRED = ("tests/test_calc.py::test_answer", "tests/test_calc.py::test_again")
RANDOM = re.compile(r"test_[0-9a-f]{12}")
TIMES = re.compile(r"in \d+\.\d+s( \(\d:\d\d:\d\d\))?|0x[0-9a-f]+|=+")


def changes(files):
    """An agent's change, from texts."""
    return {path: None if text is None else FileState(text.encode()) for path, text in files.items()}


def told(report):
    """All that a report says, but for times, addresses and names that are random in every run."""
    content = report.model_dump(exclude={"seconds"})
    for record in content["tests"].values():
        record.pop("seconds")
        record["message"] = TIMES.sub("", record["message"])
    content["reason"] = RANDOM.sub("sentinel", report.reason)
    content["output_tail"] = TIMES.sub("", RANDOM.sub("sentinel", report.output_tail)).split("\n")
    return content


class Pair:
    """A task, and a verifier of each sort."""

    def __init__(self, root, environment, kind, image=None):
        for top, files in ((root / "base", BASE), (root / "hidden", HIDDEN)):
            for path, text in files.items():
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_text(text)
        self.kind = kind
        self.task = Task(
            id="warm",
            problem_statement="answer",
            repo=RepoSource(kind="tree", path=root / "base"),
            environment=environment,
            image=image,
            tests=Tests(
                folder=root / "hidden",
                files=("tests/test_calc.py", "tests/test_other.py"),
                fail_to_pass=REQUIRED,
                pass_to_pass=("tests/test_other.py::test_other",),
                timeout_s=60,
            ),
            solution_patch=make_patch(root / "base", changes({"calc.py": "def answer():\n    return 42\n"})),
        )
        self.warm, self.cold = (Verifier(sandbox=kind, warm=warm, attempts=1) for warm in (True, False))

    def with_tests(self, **more):
        return self.task.model_copy(update={"tests": self.task.tests.model_copy(update=more)})

    def on(self, root, files):
        """The task with more files in its base tree, in a new folder."""
        for path, text in {**BASE, **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return self.task.model_copy(update={"repo": RepoSource(kind="tree", path=root)})

    def both(self, files, *, task=None, forked=True):
        """Reports of a warm and of a cold run, and demands that the warm one was forked, or was not."""
        before = servers.counts["warm"]
        reports = [v.verify(task or self.task, changes(files)) for v in (self.warm, self.cold)]
        assert (servers.counts["warm"] > before) == forked, servers.counts
        return reports

    def same(self, files, **more):
        """The report that both give."""
        warm, cold = self.both(files, **more)
        assert told(warm) == told(cold)
        return warm


@pytest.fixture(scope="session")
def pair(tmp_path_factory, lean_environment, best_kind):
    if best_kind != "bwrap":
        pytest.skip("only bwrap and rootfs have warm servers")
    return Pair(tmp_path_factory.mktemp("warm"), lean_environment, "bwrap")


@pytest.fixture(scope="session")
def image_pair(tmp_path_factory, test_image):
    if reason := why_unavailable("rootfs"):
        pytest.skip(f"rootfs does not work here: {reason}")
    return Pair(tmp_path_factory.mktemp("image"), Environment(), "rootfs", Image(reference=test_image))
