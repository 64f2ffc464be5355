"""What `swebench` 4.1.0 knows of a repository and version: its Python, some pins, how it is installed and tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.swebench.children import ask

PINS = ("swebench==4.1.0",)
"""The last version that has these facts."""

_PROGRAM = Path(__file__).with_name("ask_specs.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoSpec:
    """What is known of one version of one repository.

    Attributes:
        python: Such as "3.9"; empty for other languages.
        packages: Names or pins, of `packages` and `pip_packages` together.
        requirement_files: Files of the repository that name more; one of them is there.
        install: How the repository is installed, one command after the other.
        pre_install: What is done before.
        build: What is done after a patch was applied.
        test_commands: How its tests run; paths of test files follow the last one, where it is a Python repository.
        parser: Name of the parser that reads their output.
        in_python: It is a Python repository.
        fail_only: Its output names failures alone.
    """

    python: str
    packages: tuple[str, ...]
    requirement_files: tuple[str, ...]
    install: tuple[str, ...]
    pre_install: tuple[str, ...]
    build: tuple[str, ...]
    test_commands: tuple[str, ...]
    parser: str
    in_python: bool
    fail_only: bool

    @property
    def by_pytest(self) -> bool:
        """Whether its tests are pytest's."""
        last = self.test_commands[-1] if self.test_commands else ""
        return self.in_python and ("pytest" in last.split() or last.startswith("tox "))


def repo_specs(asked: Sequence[tuple[str, str]], *, on_progress: Progress | None = None) -> list[RepoSpec | None]:
    """The specification of each repository and version; None where the package has none.

    Raises:
        EnvironmentBuildError: If the package cannot be had: no package index.
        VerifyError: If it cannot be read.
    """
    answers = ask(_PROGRAM, [list(pair) for pair in asked], pins=PINS, on_progress=on_progress)
    return [None if answer is None else _spec(answer) for answer in answers]


def _spec(answer: dict[str, Any]) -> RepoSpec:
    packages = answer["packages"] or ""
    # Two values name files of the repository instead.
    listed = packages == "requirements.txt"
    names = [] if packages in ("requirements.txt", "environment.yml") else packages.split()
    return RepoSpec(
        python=answer["python"] or "",
        packages=(*names, *(answer["pip_packages"] or ())),
        requirement_files=tuple(answer["requirement_files"]) if listed else (),
        install=_texts(answer["install"]),
        pre_install=_texts(answer["pre_install"]),
        build=_texts(answer["build"]),
        test_commands=_texts(answer["test_cmd"]),
        parser=answer["parser"],
        in_python=answer["in_python"],
        fail_only=answer["fail_only"],
    )


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())
