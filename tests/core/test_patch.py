"""Patches as bytes: what goes in comes out, on the real git, and nothing leaves the tree."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gagar_env.changes import FileState
from gagar_env.errors import EnvironmentBuildError, PatchError, PathEscapeError
from gagar_env.patch import base_state, make_patch, normalise, patch_paths, read_patch

CRLF = b"one\r\ntwo\r\nthree\r\n"


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "base"
    (root / "src").mkdir(parents=True)
    (root / "src" / "calc.py").write_bytes(b"def add(a, b):\n    return a - b\n\n\n# end\n\n")
    (root / "src" / "dos.txt").write_bytes(CRLF)
    (root / "src" / "data.bin").write_bytes(bytes(range(256)) * 4)
    (root / "run.sh").write_bytes(b"#!/bin/sh\necho hi\n" * 5)
    (root / "link").symlink_to("src")
    (root / "no_newline").write_bytes(b"a\nb")
    return root


def round_trip(tree, changes):
    patch = make_patch(tree, changes)
    assert read_patch(tree, patch) == normalise(tree, changes)
    assert set(normalise(tree, changes)) == set(patch_paths(patch))
    return patch


FIX = {"src/calc.py": FileState(b"def add(a, b):\n    return a + b\n\n\n# end\n\n")}


def test_no_change_is_an_empty_patch(tree):
    same = {path: base_state(tree, path) for path in ("src/calc.py", "link", "nowhere")}
    assert make_patch(tree, same) == b"" == make_patch(tree, {})
    assert read_patch(tree, b"") == {} == read_patch(tree, b"\n \n")
    assert patch_paths(b"") == ()


def test_is_stable_and_plain_git_applies_it(tree, tmp_path):
    changes = {**FIX, "new/file.txt": FileState(b"x\n"), "no_newline": None}
    patch = round_trip(tree, changes)
    assert patch == make_patch(tree, dict(reversed(changes.items())))
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "apply", "-"], cwd=tree, input=patch, check=True)
    assert {path: base_state(tree, path) for path in changes} == changes


def test_git_1_lost_final_newline_is_repaired(tree):
    text = make_patch(tree, FIX)
    binary = make_patch(tree, {"src/data.bin": FileState(b"\0\1\2")})
    for patch in (text, binary):
        assert read_patch(tree, patch[:-1]) == read_patch(tree, patch) != {}


def test_git_1_stripped_context_is_refused_with_one_line(tree):
    patch = make_patch(tree, {"src/calc.py": FileState(b"def sub(a, b):\n    return a - b\n\n\n# end\n\n")})
    cut = patch.rstrip() + b"\n"
    if cut != patch:
        with pytest.raises(PatchError, match=r"^[^\n]*corrupt patch[^\n]*$"):
            read_patch(tree, cut)


def test_git_1_crlf_survives(tree):
    new = CRLF.replace(b"two", b"2")
    patch = round_trip(tree, {"src/dos.txt": FileState(new)})
    assert b"+2\r\n" in patch
    # attributes that the change itself brings have no say
    brought = {
        ".gitattributes": FileState(b"* text=auto eol=lf -diff\n"),
        "src/dos.txt": FileState(new),
    }
    assert b"+2\r\n" in round_trip(tree, brought)


def test_git_2_binary_mode_and_rename_in_one_patch(tree):
    script = base_state(tree, "run.sh")
    changes = {
        **FIX,
        "dump.db": FileState(os.urandom(5000)),
        "src/data.bin": FileState(b"\0" + bytes(range(255))),
        "run.sh": None,
        "bin/run.sh": FileState(script.data, "100755"),
        "no_newline": FileState(b"a\nb", "100755"),
    }
    patch = round_trip(tree, changes)
    assert b"rename from run.sh" in patch
    assert b"new mode 100755" in patch
    assert b"GIT binary patch" in patch


def test_copies_of_other_tools_are_read(tree):
    patch = (
        b"diff --git a/src/calc.py b/src/copy.py\nsimilarity index 100%\ncopy from src/calc.py\ncopy to src/copy.py\n"
    )
    assert read_patch(tree, patch) == {"src/copy.py": base_state(tree, "src/calc.py")}
    assert patch_paths(patch) == ("src/calc.py", "src/copy.py")


def test_git_3_new_deleted_and_ignored_files_are_all_part(tree):
    (tree / ".gitignore").write_bytes(b"build/\n*.log\n")
    round_trip(tree, {"build/out.log": FileState(b"log\n"), "src/calc.py": None, "empty": FileState(b"")})


def test_folders_and_files_trade_places(tree):
    gone = {"src/calc.py": None, "src/dos.txt": None, "src/data.bin": None}
    round_trip(tree, {**gone, "src": FileState(b"now a file\n")})
    round_trip(tree, {"run.sh": None, "run.sh/inner/x": FileState(b"x")})
    # the deletions that a swap implies are added
    assert normalise(tree, {"src": FileState(b"x", "120000")}).keys() == {"src", *gone}
    assert normalise(tree, {"link/x": FileState(b"x")})["link"] is None
    round_trip(tree, {"src": FileState(b"x", "120000")})
    round_trip(tree, {"link/x": FileState(b"x")})


def test_a_link_moves_and_a_folder_takes_its_place(tree):
    moved = {"docs/link": FileState(b"src", "120000"), "link": None, "link/x": FileState(b"x")}
    assert b"rename" not in round_trip(tree, moved)


def test_links_are_changed_as_links(tree):
    round_trip(tree, {"link": FileState(b"/etc/passwd", "120000"), "run.sh": FileState(b"src", "120000")})
    assert base_state(tree, "link/calc.py") is None  # never read through a link


NEW = b"diff --git a/%(p)s b/%(p)s\nnew file mode 100644\n--- /dev/null\n+++ b/%(p)s\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    "path",
    [
        b"../out",
        b"src/../../out",
        b"/etc/out",
        b".git/config",
        b"a/.GIT/hooks/x",
        b"link/x",
        b"./x",
    ],
)
def test_hack_11_a_patch_cannot_leave_the_tree(tree, path):
    with pytest.raises(PathEscapeError) as caught:
        read_patch(tree, NEW % {b"p": path})
    assert "\n" not in str(caught.value)
    assert not (tree / "src" / "x").exists()


def test_hack_11_a_link_and_a_file_behind_it_in_one_patch(tree):
    link = b"diff --git a/z b/z\nnew file mode 120000\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+/tmp\n"
    with pytest.raises(PatchError):
        read_patch(tree, link + NEW % {b"p": b"z/planted"})
    assert not os.path.exists("/tmp/planted")


@pytest.mark.parametrize("path", ["../x", "/x", "", "a//b", "a/./b", ".git", "x/.git/y", "a\0b"])
def test_changes_cannot_leave_the_tree(tree, path):
    with pytest.raises(PathEscapeError):
        make_patch(tree, {path: FileState(b"x")})


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (b"hello\n", "No valid patches"),
        (
            b"--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1 +1 @@\n-nothing like it\n+b\n",
            "does not apply",
        ),
        (b"--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-a\n+b\n", "No such file"),
        (NEW % {b"p": b"run.sh"}, "already exists"),
        (NEW % {b"p": b"src"}, "still holds src/"),
        (NEW % {b"p": b"run.sh/x"}, "run.sh/x"),
        (
            NEW.replace(b"100644", b"160000").replace(b"+x", b"+Subproject commit " + b"1" * 40) % {b"p": b"m"},
            "submodule",
        ),
    ],
)
def test_what_does_not_apply_says_why_on_one_line(tree, patch, reason):
    with pytest.raises(PatchError) as caught:
        read_patch(tree, patch)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_users_own_git_configuration_has_no_say(tree, tmp_path, monkeypatch):
    plain = make_patch(tree, FIX)
    (tmp_path / ".gitconfig").write_text(
        "[diff]\n\tnoprefix = true\n\texternal = /bin/false\n\talgorithm = patience\n"
        "[core]\n\tquotePath = false\n"
        '\tfsmonitor = "touch ran;"\n[apply]\n\twhitespace = fix\n[color]\n\tui = always\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    trailing = {"src/calc.py": FileState(b"x = 1   \n")}
    assert make_patch(tree, FIX) == plain
    round_trip(tree, trailing)


def test_missing_git_is_one_clear_line(tree, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EnvironmentBuildError, match=r"^git is not on PATH: install git$"):
        make_patch(tree, {"run.sh": FileState(b"src", "120000")})


NAMES = [
    "a",
    "b",
    "a b",
    'q"u\\o',
    "-rf",
    "new\nline",
    "tab\t",
    os.fsdecode(b"\xff\xfe"),
    "é",
    "a.py",
    ":x",
    "#",
]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
lines = st.lists(st.sampled_from([b"x", b"y", b"", b"--- a/x", b"\r", b"@@ -1 +1 @@", b" "]), max_size=12)
content = st.one_of(
    st.binary(max_size=300),
    lines.map(b"\n".join),
    lines.map(lambda rows: b"".join(r + b"\n" for r in rows)),
)
files = st.builds(FileState, content, st.sampled_from(["100644", "100755"]))
# no link to itself: git refuses to put anything in its place
links = st.sampled_from([b"../a", b"../../x", b"/etc", b"\xff"]).map(lambda target: FileState(target, "120000"))
states = st.one_of(files, files, links)


def fits(changes):
    """No path below another one that is there, as in a real work tree."""
    there = [path for path, state in changes.items() if state is not None]
    return not any(other.startswith(path + "/") for path in there for other in there)


def write(root, changes):
    for path, state in changes.items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if state.mode == "120000":
            os.symlink(state.data, os.fsencode(target))
        else:
            with open(target, "wb") as stream:
                stream.write(state.data)
            os.chmod(target, 0o755 if state.mode == "100755" else 0o644)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    base=st.dictionaries(paths, states, max_size=6).filter(fits),
    changes=st.dictionaries(paths, st.one_of(st.none(), states), max_size=6).filter(fits),
    keep=st.booleans(),
)
def test_any_change_survives_the_round_trip(tmp_path_factory, base, changes, keep):
    root = tmp_path_factory.mktemp("tree")
    write(root, base)
    if keep:  # aim at what is there
        changes = {**dict.fromkeys(base), **changes}
    round_trip(root, changes)
