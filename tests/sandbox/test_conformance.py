"""One list of what every sandbox does, run against each kind that works here."""

import os
import time
import uuid

import pytest

from gagar_env.changes import FileState
from gagar_env.errors import PathEscapeError, SandboxClosedError
from gagar_env.sandbox import Sandbox, SandboxSpec, open_sandbox
from gagar_env.sandbox.scripted import ScriptedSandbox


def test_is_a_sandbox(box, kind):
    assert isinstance(box, Sandbox)
    assert box.kind == kind


# --- one command ---


def test_output_and_exit_code(sh):
    result = sh("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.output) == (3, b"out\nerr\n")


def test_starts_in_the_work_tree(sh, box):
    assert sh("pwd; cat pkg/a.py").output.decode() == f"{box.workdir}\na = 1\n"


def test_cwd_and_env_are_explicit(sh, box, monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "s3cret")
    result = sh("pwd; echo $TASK $EXTRA; env", cwd="pkg/deep", env={"EXTRA": "it's 'quoted' $x"})
    assert result.output.decode().startswith(f"{box.workdir}/pkg/deep\nyes it's 'quoted' $x\n")
    assert b"HOST_SECRET" not in result.output


def test_missing_cwd_is_a_result(sh):
    assert sh("echo ran", cwd="nowhere").exit_code == 1


def test_signal_is_128_plus_number(sh):
    assert sh("kill -TERM $BASHPID").exit_code == 143


@pytest.mark.parametrize(
    "first",
    [
        "x=1; cd /; set -eu; shopt -s extglob; f() { echo f; }; exec 2>/dev/null; trap 'echo bye' EXIT",
        "if then fi (",
        "exit 7",
        "echo 'unclosed",
        "exec true",
        "unset PATH HOME",
        "set -n",
    ],
)
def test_each_command_starts_clean(sh, box, first):
    before = sh("set -o; shopt; declare -F; trap; pwd; env | sort").output
    sh(first)
    assert sh("set -o; shopt; declare -F; trap; pwd; env | sort").output == before
    assert sh("echo ${x-unset}").output == b"unset\n"


def test_syntax_error_is_explained(sh):
    result = sh("if then")
    assert result.exit_code != 0
    assert b"syntax error" in result.output


def test_heredocs_and_line_numbers(sh):
    assert sh("cat <<'X'\n$a `b`\nX\n").output == b"$a `b`\n"
    assert sh("true\nnosuchcommand").exit_code == 127


def test_large_command(sh):
    text = "x" * 300_000
    assert sh(f"cat <<'END' | wc -c\n{text}\nEND").output.strip() == b"300001"


def test_nul_in_a_command_is_a_result(sh):
    result = sh("echo a\0b")
    assert result.exit_code == 126
    assert b"NUL" in result.output


def test_pipes_get_sigpipe(sh):
    assert sh("yes | head -1").output == b"y\n"


def test_files_stay_between_commands(sh):
    sh("echo new > new.txt")
    assert sh("cat new.txt").output == b"new\n"


# --- time ---


def test_exec_1_timeout_kills_the_whole_tree(sh):
    number = uuid.uuid4().int % 10**9  # without isolation the processes of other workers' tests are seen as well
    marks = f"sleep 9{number:09}", f"while {number}: pass"
    started = time.monotonic()
    result = sh(f'echo partial; python3 -c "{marks[1]}" & setsid {marks[0]} & wait', timeout_s=1)
    assert time.monotonic() - started < 60  # and not until the processes end, which they never do
    assert result.timed_out
    assert result.exit_code == 124
    assert result.output.startswith(b"partial\n")
    left = sh("for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p; echo; done 2>/dev/null").output
    assert not [mark for mark in marks if mark.encode() in left]
    assert sh("echo next").output == b"next\n"


def test_exec_2_background_child_does_not_hold_the_call(sh):
    result = sh("sleep 300 & echo hi", timeout_s=30)
    assert (result.exit_code, result.output, result.timed_out) == (0, b"hi\n", False)
    assert result.seconds < 25


def test_exec_2_silent_grandchild_with_open_pipe(sh):
    result = sh("(setsid nohup sleep 300 & ) ; echo hi", timeout_s=30)
    assert (result.output, result.timed_out) == (b"hi\n", False)


def test_background_processes_end_with_their_command(sh):
    sh("(while :; do echo tick >> log; sleep 0.05; done) & sleep 0.2; setsid sleep 986 &")
    first = sh("cat log | wc -l").output
    time.sleep(0.3)
    assert sh("cat log | wc -l").output == first


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "read x",
        "python3",
        "python3 -c 'input()'",
        "cat /dev/tty",
        "less pkg/a.py",
        "sudo id",
    ],
)
def test_exec_3_nothing_waits_for_a_keyboard(sh, command):
    assert not sh(command, timeout_s=15).timed_out


def test_exec_3_git_editors_fail_fast(sh):
    result = sh("git init -q . && git add -A && git commit -q -m x && git commit --amend", timeout_s=15)
    assert not result.timed_out
    assert result.exit_code != 0
    assert not sh("git rebase -i HEAD; git log", timeout_s=15).timed_out


# --- output ---


def test_enc_1_bytes_are_kept(sh):
    assert sh(r"printf '\377\376|a\000b|\303\251'").output == b"\xff\xfe|a\0b|\xc3\xa9"


def test_enc_2_output_is_capped_while_it_is_read(sh):
    result = sh("echo first; yes | head -c 30000000; echo last", max_output_bytes=1000, timeout_s=60)
    assert result.exit_code == 0
    assert len(result.output) < 1200
    assert result.output.startswith(b"first\n")
    assert result.output.endswith(b"last\n")
    assert result.dropped_bytes == 30_000_011 - 1000
    assert str(result.dropped_bytes).encode() in result.output


def test_enc_2_one_long_line(sh):
    result = sh("head -c 20000000 /dev/zero | tr '\\0' x", max_output_bytes=5000, timeout_s=60)
    assert result.dropped_bytes == 20_000_000 - 5000


# --- the shell is killed by the agent ---


def test_agent_kills_its_shell(sh):
    sh("echo kept > kept.txt")
    assert sh("kill -9 $$; sleep 5").exit_code == 137
    assert sh("cat kept.txt").output == b"kept\n"


def test_agent_kills_everything_it_can(sh, kind):
    if kind == "process":
        pytest.skip("would kill the host's processes: it isolates nothing")
    assert sh("kill -9 -1; echo no").exit_code == 137
    assert sh("echo back").output == b"back\n"


def test_agent_cannot_forge_exit_codes_through_the_shells_own_channels(sh):
    result = sh("for fd in 3 4 5 6 7 8 9 10; do echo 0 >&$fd; done 2>/dev/null; exit 5")
    assert result.exit_code == 5
    # 3 is the folder that `ls` itself reads
    assert sh("ls /proc/self/fd | tr '\\n' ' '").output == b"0 1 2 3 "


# --- files ---


def test_write_then_capture(box, sh):
    changes = {
        "pkg/a.py": FileState(b"a = 9\n"),
        "run.sh": FileState(b"echo run\n", "100755"),
        "new/dir/file": FileState(b"\x00\xff", "100644"),
        "new/link": FileState(b"../pkg/a.py", "120000"),
        "text.txt": None,
    }
    box.write(changes)
    assert sh("cat new/link; test ! -e text.txt && test -x run.sh && echo ok").output == b"a = 9\nok\n"
    capture = box.capture()
    assert dict(capture.changes) == changes
    assert capture.dropped == ()


def test_written_files_can_be_edited_by_the_agent(box, sh):
    box.write({"given/in.txt": FileState(b"1\n"), "pkg/a.py": FileState(b"x\n")})
    assert sh("echo 2 >> given/in.txt && echo y >> pkg/a.py && touch given/more").exit_code == 0


def test_write_refuses_paths_outside(box, tmp_path):
    for path in (
        "../x",
        "/etc/x",
        "a/../../x",
        ".git/config",
        "pkg/.GIT/hooks/x",
        "",
        "a//b",
        "a\0b",
    ):
        with pytest.raises(PathEscapeError):
            box.write({"fine.txt": FileState(b"1"), path: FileState(b"x")})
    assert dict(box.capture().changes) == {}


def test_hack_11_write_does_not_follow_links(box, sh, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o777)
    (victim / "f").write_text("untouched")
    sh(f"rm -rf pkg && ln -s {victim} pkg; ln -sf {victim}/f run.sh; ln -s {victim}/f hard")
    box.write(
        {
            "pkg/f": FileState(b"safe"),
            "run.sh": FileState(b"safe"),
            "hard/inner": FileState(b"safe"),
        }
    )
    assert (victim / "f").read_text() == "untouched"
    assert sorted(os.listdir(victim)) == ["f"]
    assert sh("cat pkg/f run.sh hard/inner; test -L pkg || echo plain").output == b"safesafesafeplain\n"


def test_delete_does_not_follow_links(box, sh, tmp_path):
    (tmp_path / "f").write_text("untouched")
    sh(f"ln -s {tmp_path} out")
    box.write({"out/f": None, "missing/file": None})
    assert (tmp_path / "f").read_text() == "untouched"


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("rm -r pkg/deep", {"pkg/deep/b.py": None, "pkg/deep/c.py": None}),
        (
            "rm -r pkg/deep && mkdir pkg/deep && echo b = 2 > pkg/deep/b.py",
            {"pkg/deep/c.py": None},
        ),
        (
            "rm -r pkg/deep && echo file > pkg/deep",
            {"pkg/deep/b.py": None, "pkg/deep/c.py": None, "pkg/deep": FileState(b"file\n")},
        ),
        (
            "rm run.sh && mkdir run.sh && echo x > run.sh/in",
            {"run.sh": None, "run.sh/in": FileState(b"x\n")},
        ),
        (
            "mv pkg/deep moved",
            {
                "pkg/deep/b.py": None,
                "pkg/deep/c.py": None,
                "moved/b.py": FileState(b"b = 2\n"),
                "moved/c.py": FileState(b"c = 3\n"),
            },
        ),
        ("chmod +x pkg/a.py", {"pkg/a.py": FileState(b"a = 1\n", "100755")}),
        ("ln -sf other link", {"link": FileState(b"other", "120000")}),
        ("rm link && echo plain > link", {"link": FileState(b"plain\n")}),
        ("printf 'one\\r\\n2\\r\\n' > text.txt", {"text.txt": FileState(b"one\r\n2\r\n")}),
        ("touch -d 2001-01-01 pkg/a.py", {}),
        ("echo x > pkg/a.py; printf 'a = 1\\n' > pkg/a.py", {}),
        ("mkdir empty", {}),
        ("mkdir __pycache__ .pytest_cache; touch __pycache__/a.pyc .pytest_cache/x b.pyc", {}),
        ("printf '#' > pkg/.gitignore; echo s > \"$(printf 'odd\\nname \\377')\"", None),
    ],
)
def test_git_3_capture_sees(box, sh, command, changes):
    assert sh(command).exit_code == 0, command
    found = dict(box.capture().changes)
    if changes is None:
        assert found == {
            "pkg/.gitignore": FileState(b"#"),
            os.fsdecode(b"odd\nname \xff"): FileState(b"s\n"),
        }
    else:
        assert found == changes


def test_git_3_capture_ignores_what_git_says(box, sh):
    sh("git init -q . && git add -A && git commit -qm base && echo '*.log' > .gitignore && echo x > a.log")
    sh("git checkout -qb other && git add -A && git commit -qm work && git update-index --assume-unchanged run.sh")
    sh("echo changed > run.sh")
    found = set(box.capture().changes)
    assert found == {".gitignore", "a.log", "run.sh"}


def test_capture_names_what_it_leaves_out(box, sh):
    sh("head -c 300000 /dev/zero > big; mkfifo pipe; mkdir -p sub/.git; echo x > sub/.git/config")
    capture = box.capture(max_file_bytes=200_000)
    assert dict(capture.changes) == {}
    assert {d.path: d.reason.split()[0] for d in capture.dropped if d.path != "sub/.git"} == {
        "big": "larger",
        "pipe": "not",
    }


def test_a_file_that_is_large_in_the_base_may_be_as_large_when_it_is_edited(box, sh):
    """`text.txt` is over the limit already; twice its size is what work on it may need."""
    size = len(sh("cat text.txt").output)
    assert size > 3
    sh("printf x >> text.txt; head -c 9 /dev/zero > new")
    capture = box.capture(max_file_bytes=3)
    assert set(capture.changes) == {"text.txt"}
    sh(f"head -c {2 * size + 1} /dev/zero > text.txt")
    assert {d.path: d.reason for d in box.capture(max_file_bytes=3).dropped}[
        "text.txt"
    ] == f"larger than {2 * size} bytes"


def test_capture_does_not_change_what_the_agent_sees(box, sh):
    sh("git init -q . && git add -A && echo new > staged && git add staged")
    before = sh("git status --porcelain; ls -la").output
    box.capture()
    assert sh("git status --porcelain; ls -la").output == before


def test_base_is_never_changed(box, sh, tree):
    sh("rm -rf pkg; echo x > run.sh; chmod -R 777 . || true")
    assert (tree / "pkg/a.py").read_text() == "a = 1\n"
    assert (tree / "run.sh").read_text() == "echo run\n"


def test_scratch(box, sh):
    path = box.write_scratch("job.json", b"{}")
    assert path == f"{box.scratch}/job.json"
    assert sh(f"cat {path}; echo answer > {box.scratch}/out").output == b"{}"
    assert box.read_scratch("out") == b"answer\n"
    assert box.read_scratch("out", max_bytes=3) is None
    assert box.read_scratch("none") is None
    sh(f"ln -s /etc/passwd {box.scratch}/trap; mkfifo {box.scratch}/fifo; mkdir {box.scratch}/dir")
    assert [box.read_scratch(n) for n in ("trap", "fifo", "dir")] == [None, None, None]
    assert not any(p.startswith("scratch") for p in box.capture().changes)


# --- life ---


def test_two_sandboxes_of_one_base_are_apart(kind, tree, sh, system):
    other = open_sandbox(kind, SandboxSpec(tree=tree, **system))
    try:
        sh("echo mine > pkg/a.py")
        assert other.run("cat pkg/a.py", timeout_s=10).output == b"a = 1\n"
    finally:
        other.close()


def test_close_ends_everything_and_is_idempotent(box, sh):
    box.close()
    box.close()
    with pytest.raises(SandboxClosedError):
        sh("true")
    with pytest.raises(SandboxClosedError):
        box.capture()


def test_scripted_follows_the_protocol(tree):
    def answer(sandbox, command):
        return RuntimeError(command)

    sandbox = ScriptedSandbox(SandboxSpec(tree=tree), answer)
    assert isinstance(sandbox, Sandbox)
    with pytest.raises(RuntimeError, match="boom"):
        sandbox.run("boom", timeout_s=1)
    sandbox.write({"pkg/a.py": FileState(b"new"), "run.sh": FileState(b"echo run\n")})
    assert dict(sandbox.capture().changes) == {"pkg/a.py": FileState(b"new")}
    with pytest.raises(PathEscapeError):
        sandbox.write({"../x": None})
    assert sandbox.read_scratch(sandbox.write_scratch("f", b"1").split("/")[-1]) == b"1"
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxClosedError):
        sandbox.run("x", timeout_s=1)
