"""Writes groups into a run, as many as it is told or until it is killed: `python writer.py RUN NAME COUNT`."""

import itertools
import sys
from pathlib import Path

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group
from gagar_env.store import RunFolder


def group(name):
    episodes = [
        Episode(
            id=f"{name}-{number}",
            group_id=name,
            task_id="t",
            status=EpisodeStatus.SUBMITTED,
            turns=(Turn(action="look", observation=f"{name} " * 2000),),
            report=TestReport(outcome=Outcome.PASSED if number else Outcome.FAILED, reason="" if number else "no"),
        )
        for number in range(2)
    ]
    return grade_group(episodes, None), episodes


def main():
    folder, name, count = RunFolder.open(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    for number in itertools.count() if count < 0 else range(count):
        result, episodes = group(f"{name}.{number}")
        folder.add(result, episodes)
        folder.add_metrics(number, {"x": number})
        print(result.group_id, flush=True)


if __name__ == "__main__":
    main()
