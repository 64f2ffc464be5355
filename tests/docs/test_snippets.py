"""Every Python block of the README and of docs/ runs, and every `gagar` line of their shell blocks.

The Python blocks of one page run in order, in one interpreter, as a reader would type them; the lines of a shell block
run in order in one folder. What names docker needs an
engine.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WALKS = [ROOT / "docs" / f"{name}.md" for name in ("index", "own-repository", "exports", "runs", "view")]
"""Pages that are one story: all their blocks run in order, in one folder, as a reader would type them."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(page, language):
    return [text for name, text in BLOCK.findall(page.read_text()) if name == language]


def marks(page, text):
    """Python of the README is run each time, all else with the slow tests."""
    docker = [pytest.mark.docker] if "docker" in text else []
    return docker if page.name == "README.md" else [*docker, pytest.mark.slow]


def pages():
    for page in (page for page in PAGES if page not in WALKS):
        if code := "\n".join(blocks(page, "python")):
            yield pytest.param(code, id=page.name, marks=marks(page, code))


def gagar_blocks():
    for page in (page for page in PAGES if page not in WALKS):
        for block in blocks(page, "sh"):
            if lines := [line for line in block.splitlines() if line.startswith("gagar ")]:
                yield pytest.param(lines, id=f"{page.name}: {lines[0]}", marks=marks(page, block))


@pytest.mark.parametrize("code", list(pages()))
def test_python_blocks(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": "local"},  # not the cluster of a test beside this one, which may be killed
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("lines", list(gagar_blocks()))
def test_shell_blocks(lines, tmp_path):
    for line in lines:
        command = [sys.executable, "-m", "gagar_env", *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.name)
def test_walks(page, tmp_path):
    bin_folder, work = tmp_path / "bin", tmp_path / "work"
    bin_folder.mkdir()
    work.mkdir()
    (bin_folder / "gagar").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gagar_env "$@"\n')
    (bin_folder / "gagar").chmod(0o755)
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    programs = {"sh": ["bash", "-e", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
    for language, text in BLOCK.findall(page.read_text()):
        if language in programs:
            command = [*programs[language], text]
            done = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=900, check=False)
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_commands_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.M)
    assert {"demo", "test"} <= set(named)
    for name in named:
        assert re.search(rf"^{name}:", makefile, re.M)
