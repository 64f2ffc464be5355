"""`DiscreteActionWrapper`: an environment of text for agents that choose by number, such as those of SB3."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from gagar_env.actions import ActionFormat, Answer
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import EnvironmentBuildError, SandboxError, TaskError
from gagar_env.menu import EntryKind, Menu, MenuRules, build_menu
from gagar_env.menu.build import EditSource, empty_menu
from gagar_env.menu.pieces import PieceSize
from gagar_env.provision import provision_base
from gagar_env.tasks.task import Task
from gagar_env.wrappers.discrete_features import SeenTests, hashed_bag, read_tests, scaled

Observation = dict[str, NDArray[Any]]

STATE: Final = (
    "turn",
    "last_ok",
    "last_failed",
    "timed_out",
    "tests_seen",
    "tests_fresh",
    "tests_passed",
    "tests_failed",
    "added",
    "removed",
    "files",
)
"""What the places of `state` hold, each in [0, 1]; see the class."""
_MOST_MENUS: Final = 32


class DiscreteActionWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Actions are numbers of a menu, observations are numbers.

    The menu of a task has views, edits, the run of the repository's own tests, clean-ups and the submission; see
    `gagar_env.menu`. It has `size` entries for every task: entries that do nothing fill it up, and cost a turn like any
    other. Each action becomes a text in the environment's own format, so that records, flags, limits and verification
    are those of `RepoEditEnv`; it is recorded as one token. The menu depends on the task and these arguments alone, not
    on the seed of `reset`.

    By default the edits are pieces of the task's known solutions, good and bad: **a toy for learners and diagnoses, not
    a measure of skill**. Which piece comes from which solution is in no observation or `info`. With `mutations`, or for
    a task without known solutions, they are changes of one token in the files that the problem statement speaks of.

    The observation is a dictionary of float32 arrays:

    | key | shape | what |
    | --- | --- | --- |
    | `problem` | (bag,) | words of the problem statement, hashed: tells tasks apart |
    | `output` | (bag,) | words of the last output, hashed |
    | `taken` | (size,) | 1: taken, and its last command exited with 0; -1: with another code; 0: not taken |
    | `mask` | (size,) | 1 for entries that make sense now, as `action_masks` |
    | `state` | (11,) | see below |

    `state` holds the part of the turns that is used; whether the last command exited with 0, failed, timed out (an
    action without a command is neither); whether tests were run, and since the last edit; the part of these that
    passed, and `n / (n + 5)` of those that failed; lines added and removed by edits that stand, as `n / (n + 50)`; and
    files that they change, as `n / (n + 3)`. Undone edits do not count.

    Args:
        env: A `RepoEditEnv`, or wrappers around one.
        size: Entries of the menu, and so the size of the action space.
        edits: `auto`, `solutions` or `mutations`.
        pieces: Solutions are taken apart by `hunk` or by `file`; whole files make tasks of several files much easier.
        views: Places for views.
        cleanups: Places for clean-ups.
        test_runs: Whether the menu can run the repository's tests, which takes most of an episode's time.
        bag: Places of each hashed bag.
        menu_seed: Chooses between edits, where there are more than places.
        limit_ends: Whether an episode that ends at the limit of turns is `terminated` in place of `truncated`: the
            limit is part of the problem here, it is seen in `state`, and the work is verified. A learner would
            otherwise add its guess of what comes after, and learn not to submit. The record keeps its status.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        *,
        size: int = 64,
        edits: EditSource = "auto",
        pieces: PieceSize = "hunk",
        views: int = 5,
        cleanups: int = 5,
        test_runs: bool = True,
        bag: int = 64,
        menu_seed: int = 0,
        limit_ends: bool = True,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            size=size,
            edits=edits,
            pieces=pieces,
            views=views,
            cleanups=cleanups,
            test_runs=test_runs,
            bag=bag,
            menu_seed=menu_seed,
            limit_ends=limit_ends,
        )
        gym.Wrapper.__init__(self, env)
        if bag < 1:
            raise ValueError(f"bag must be 1 or more, got {bag}")
        self._rules = MenuRules(
            size=size,
            edits=edits,
            pieces=pieces,
            views=views,
            cleanups=cleanups,
            test_runs=test_runs,
            seed=menu_seed,
        )
        self._bag = bag
        self._limit_ends = limit_ends
        self._menus: dict[str, tuple[Task, Menu, NDArray[np.float32]]] = {}
        self._menu: Menu | None = None
        self._problem = np.zeros(bag, dtype=np.float32)
        self._taken = np.zeros(size, dtype=np.float32)
        self._standing: list[int] = []
        self._tests: SeenTests | None = None
        self._fresh = self._over = False
        self._turns = 1
        self.action_space = spaces.Discrete(size)
        self.observation_space = spaces.Dict(
            {
                "mask": spaces.Box(0.0, 1.0, (size,), np.float32),
                "output": spaces.Box(0.0, 1.0, (bag,), np.float32),
                "problem": spaces.Box(0.0, 1.0, (bag,), np.float32),
                "state": spaces.Box(0.0, 1.0, (len(STATE),), np.float32),
                "taken": spaces.Box(-1.0, 1.0, (size,), np.float32),
            }
        )

    @property
    def menu(self) -> Menu:
        """The menu of this episode's task. Holds secrets, as `task` does: for policies and people, not for a model.

        Raises:
            ResetNeeded: Before the first `reset`.
        """
        if self._menu is None:
            raise ResetNeeded("call reset() first: the menu depends on the task")
        return self._menu

    def action_masks(self) -> NDArray[np.bool_]:
        """Which entries make sense now, shape (size,); the name is that of sb3-contrib's MaskablePPO.

        Entries that do nothing do not, nor do edits that stand, nor clean-ups that would take back none. Taking one all
        the same is allowed: it costs a turn.
        """
        mask, entries = self.menu.real, self.menu.entries
        standing = [entries[number] for number in self._standing]
        for number in self.menu.of_kind(EntryKind.CLEAN):
            mask[number] = any(entries[number].undoes(edit) for edit in standing)
        mask[self._standing] = False
        return mask

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the options are those of the environment.

        Raises:
            TaskError: If edits shall come from solutions and the task has none, or as the environment does.
        """
        _, info = self.env.reset(seed=seed, options=options)
        base: Any = self.env.unwrapped
        self._menu, self._problem = self._known(base.task)
        self._turns = base.limits.turns
        self._taken = np.zeros(len(self._menu), dtype=np.float32)
        self._standing, self._tests, self._fresh = [], None, False
        self._over = info[EPISODE_KEY] is not None
        return self._observe("", info), info

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an entry.

        Raises:
            ValueError: If there is no entry of that number.
            ResetNeeded: Before the first `reset`.
        """
        number = int(action)
        if not 0 <= number < len(self.menu):
            raise ValueError(f"action {action!r} is no entry of the menu, which has {len(self.menu)}")
        entry = self.menu.entries[number]
        base: Any = self.env.unwrapped
        actions: ActionFormat = base.action_format
        text = actions.submit() if entry.kind is EntryKind.SUBMIT else actions.bash(entry.command)
        output, reward, terminated, truncated, info = self.env.step(Answer(text, completion_tokens=1))
        if not self._over:
            self._note(number, output, info)
        self._over = info[EPISODE_KEY] is not None
        if self._limit_ends and info["status"] == EpisodeStatus.TURN_LIMIT.value and info["valid"]:
            terminated, truncated = True, False
        return self._observe(output, info), float(reward), terminated, truncated, info

    def _note(self, number: int, output: str, info: dict[str, Any]) -> None:
        """Keep in mind what the action did."""
        entry, worked = self.menu.entries[number], info["exit_code"] == 0
        if entry.kind is EntryKind.PAD:
            return
        self._taken[number] = 1.0 if worked or entry.kind is EntryKind.SUBMIT else -1.0
        if entry.kind is EntryKind.TEST and not info["timed_out"]:
            seen = read_tests(output)
            self._tests, self._fresh = seen or self._tests, seen is not None
        elif entry.kind is EntryKind.EDIT and worked:
            self._standing.append(number)
            self._fresh = False
        elif entry.kind is EntryKind.CLEAN and worked:
            self._standing = [n for n in self._standing if not entry.undoes(self.menu.entries[n])]
            self._fresh = False

    def _observe(self, output: str, info: dict[str, Any]) -> Observation:
        edits = [self.menu.entries[number] for number in self._standing]
        tests = self._tests or SeenTests()
        code = info["exit_code"]
        state = {
            "turn": min(1.0, info["turn"] / self._turns),
            "last_ok": code == 0,
            "last_failed": code > 0,
            "timed_out": info["timed_out"],
            "tests_seen": self._tests is not None,
            "tests_fresh": self._fresh,
            "tests_passed": tests.share,
            "tests_failed": scaled(tests.failed, 5.0),
            "added": scaled(sum(edit.added for edit in edits), 50.0),
            "removed": scaled(sum(edit.removed for edit in edits), 50.0),
            "files": scaled(len({edit.path for edit in edits}), 3.0),
        }
        return {
            "mask": self.action_masks().astype(np.float32),
            "output": hashed_bag(output, self._bag),
            "problem": self._problem.copy(),
            "state": np.array([state[name] for name in STATE], dtype=np.float32),
            "taken": self._taken.copy(),
        }

    def _known(self, task: Task) -> tuple[Menu, NDArray[np.float32]]:
        """The menu of a task and its problem in numbers, made once for the task that was last seen by this id."""
        found = self._menus.get(task.id)
        if found is None or found[0] is not task:
            try:
                menu = build_menu(task, provision_base(task).tree, self._rules)
            except (EnvironmentBuildError, SandboxError, OSError):  # the episode is over already, and says why
                return empty_menu(task, self._rules), hashed_bag(task.problem_statement, self._bag)
            except TaskError:
                self.env.close()
                raise
            found = (task, menu, hashed_bag(task.problem_statement, self._bag))
            while len(self._menus) >= _MOST_MENUS:
                del self._menus[next(iter(self._menus))]
            self._menus[task.id] = found
        return found[1:]
