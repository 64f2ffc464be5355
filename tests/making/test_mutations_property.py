"""Whatever site of real code is taken: it can be read, means something else, and has a way back."""

import argparse
import ast
import configparser
import functools
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.changes import FileState
from gagar_env.making.mutations import find_sites, mutate
from gagar_env.patch import make_patch, read_patch

pytestmark = pytest.mark.slow

SOURCES = {Path(module.__file__).name: Path(module.__file__).read_bytes() for module in (textwrap, configparser)}
SITES = functools.cache(lambda name: find_sites(name, SOURCES[name]))


@given(name=st.sampled_from(sorted(SOURCES)), draw=st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_any_site_gives_code_and_a_way_back(tmp_path_factory, name, draw):
    sites, source = SITES(name), SOURCES[name]
    site = sites[draw % len(sites)]
    broken = mutate(site)
    if broken is None:
        return
    compile(broken, name, "exec")
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))
    folder = tmp_path_factory.mktemp("tree")
    (folder / name).write_bytes(source)
    there = make_patch(folder, {name: FileState(broken)})
    assert read_patch(folder, there) == {name: FileState(broken)}
    (folder / name).write_bytes(broken)
    back = make_patch(folder, {name: FileState(source)})
    assert read_patch(folder, back) == {name: FileState(source)}


@given(draw=st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_lines_beside_the_site_stay(draw):
    name = "configparser.py"
    site = SITES(name)[draw % len(SITES(name))]
    broken = mutate(site)
    if broken is None:
        return
    old, new = SOURCES[name].splitlines(True), broken.splitlines(True)
    above = min(site.first_line, site.statement_line)
    while above > 1 and old[above - 2].strip()[:1] in (b"", b"#"):
        above -= 1  # comments right above a statement go with it
    assert new[: above - 1] == old[: above - 1]
    below = len(old) - site.last_line
    if site.kind not in ("body", "branch", "condition", "exception"):
        assert new[len(new) - below :] == old[len(old) - below :]


@pytest.mark.slow
def test_a_long_file_has_bugs_of_every_kind():
    source = Path(argparse.__file__).read_bytes()
    sites = find_sites("argparse.py", source)
    assert len({site.kind for site in sites}) == 10
    assert len(sites) > 1000
