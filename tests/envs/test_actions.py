import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.actions import (
    BadAction,
    Create,
    Edit,
    RunCommand,
    Submit,
    View,
    format_names,
    get_format,
    register_format,
)
from gagar_env.actions.bash import BashFormat
from gagar_env.provision import provision
from gagar_env.sandbox import open_sandbox

BASH, TOOLS = get_format("bash"), get_format("tools")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("ls -l", "ls -l"),
        ("I look first.\n```bash\nls\n```\nThen more.", "ls\n"),
        ("```sh\nls\n```", "ls\n"),
        ("```bash\nls", "ls"),
        ("```bash\r\nls\r\n```\r\n", "ls\r\n"),
        ("```bash\na\n```\n```bash\nb\n```", "```bash\na\n```\n```bash\nb\n```"),
        ("```python\nprint()\n```", "```python\nprint()\n```"),
        ("```bash\na\n```\nit prints\n```\nx\n```", "a\n"),
        ("```bash\ncat > R <<'E'\n```py\nx\n```\nE\n```", "cat > R <<'E'\n```py\nx\n```\nE\n"),
        ("```bash\ncat > R <<'E'\n```\nx\n```\nE\n```", "cat > R <<'E'\n```\nx\n```\nE\n"),
        ("cat > R <<'E'\n```bash\nx\n```\nE", "cat > R <<'E'\n```bash\nx\n```\nE"),
        ("echo submit", "echo submit"),
        ("submit now", "submit now"),
    ],
)
def test_bash_takes_the_text_or_its_only_block(text, script):
    assert BASH.parse(text) == RunCommand(command=script)


@pytest.mark.parametrize("text", ["submit", " submit\n", "```bash\nsubmit\n```"])
def test_bash_submits_by_the_word_alone(text):
    assert BASH.parse(text) == Submit()


@pytest.mark.parametrize("text", ["", " \n", "```bash\n```"])
def test_bash_explains_an_empty_action(text):
    problem = BASH.parse(text).problem
    assert "empty" in problem
    assert "submit" in problem


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ({"tool": "bash", "command": "ls"}, RunCommand(command="ls")),
        ({"tool": "view", "path": "a.py"}, View(path="a.py")),
        ({"tool": "view", "path": "a.py", "start": 3, "end": 3}, View(path="a.py", start=3, end=3)),
        ({"tool": "edit", "path": "a", "old": "x", "new": ""}, Edit(path="a", old="x", new="")),
        ({"tool": "create", "path": "a", "content": ""}, Create(path="a", content="")),
        ({"tool": "submit"}, Submit()),
    ],
)
def test_tools_reads_each_tool(call, action):
    text = json.dumps(call)
    assert TOOLS.parse(text) == action
    assert TOOLS.parse(f"So:\n```json\n{text}\n```\n") == action
    assert TOOLS.parse(f"```\n{json.dumps(call, indent=1)}\n```") == action


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not one JSON object"),
        ("ls", "not one JSON object"),
        ("[1]", "not an object"),
        ("null", "not an object"),
        ('{"tool": "bash", "command": "ls"} {"tool": "submit"}', "not one JSON object"),
        ('{"tool": "bash", "command": "ls",}', "not one JSON object"),
        ('{"tool": "bash", "command": NaN}', "not JSON"),
        ('{"tool": "submit", "tool": "bash"}', "twice"),
        ("{}", "No tool is named"),
        ('{"tool": 3}', "There is no tool 3"),
        ('{"tool": "vew", "path": "a"}', "There is no tool 'vew'; the tools are bash, view"),
        ('{"tool": "bash"}', "missing command"),
        ('{"tool": "bash", "command": 3}', "command must be a string"),
        ('{"tool": "bash", "command": "ls", "timeout": 3}', "unknown argument 'timeout'"),
        ('{"tool": "submit", "answer": "x"}', "unknown argument 'answer'"),
        ('{"tool": "view", "path": "a", "start": "1"}', "start must be a whole number"),
        ('{"tool": "view", "path": "a", "start": true}', "start must be a whole number"),
        ('{"tool": "view", "path": "a", "start": 1.0}', "start must be a whole number"),
        ('{"tool": "view", "path": "a", "start": 0}', "1 or more"),
        ('{"tool": "view", "path": "a", "start": 5, "end": 4}', "end is before start"),
        ('{"tool": "view", "path": " "}', "path must name a file"),
        ('{"tool": "view", "path": "a\\u0000"}', "path must name a file"),
        ('{"tool": "edit", "path": "a", "old": "", "new": "x"}', "old must not be empty"),
        ('{"tool": "create", "path": "a", "content": "\\ud800"}', "surrogate"),
        ("[" * 100_000, "not one JSON object"),
        ('{"tool": ' + "9" * 5000 + "}", ""),
    ],
)
def test_tools_explains_a_bad_call_in_one_line(text, says):
    action = TOOLS.parse(text)
    assert isinstance(action, BadAction)
    assert says in action.problem
    assert '{"tool": ' in action.problem
    assert "\n" not in action.problem
    assert len(action.problem) < 500


def test_the_example_is_of_the_tool_that_was_meant():
    assert '"old": "x = 1"' in TOOLS.parse('{"tool": "edit", "path": "a"}').problem


@given(st.text())
def test_no_text_makes_a_format_raise(text):
    for name in ("bash", "tools"):
        assert isinstance(get_format(name).parse(text), RunCommand | Submit | BadAction | View | Edit | Create)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_what_a_format_writes_it_reads(command):
    assert TOOLS.parse(TOOLS.bash(command)) == RunCommand(command=command)
    if command.strip():
        assert isinstance(BASH.parse(BASH.bash(command)), RunCommand)
    for name in ("bash", "tools"):
        action_format = get_format(name)
        assert action_format.parse(action_format.submit()) == Submit()
        assert action_format.instructions()


def test_formats_are_pluggable():
    class Shouting(BashFormat):
        name = "shouting"

        def submit(self):
            return "SUBMIT"

    register_format(Shouting())
    assert get_format("shouting").submit() == "SUBMIT"
    assert "shouting" in format_names()


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(ValueError, match=r"no action format 'xml'; known are: bash, tools"):
        get_format("xml")


@pytest.fixture
def box(sandbox_kind, tiny_task):
    sandbox = open_sandbox(sandbox_kind, provision(tiny_task).spec)
    yield sandbox
    sandbox.close()


@pytest.fixture
def do(box):
    def perform(action):
        return (
            box.run(action, timeout_s=20)
            if isinstance(action, str)
            else action.perform(box, timeout_s=20, max_output_bytes=4096)
        )

    return perform


def test_quoted_commands_run_as_written(do):
    for command in ("submit() { echo it\\'s; }\nsubmit", "echo '\n```bash\nx\n```\n'", "true\n```bash\nls\n```"):
        assert do(BASH.parse(BASH.bash(command))).output == do(command).output


def test_view_shows_numbered_lines_and_lists_folders(do):
    assert do(View(path="calc.py", start=2, end=2)).output == b"     2\t    return a - b\n"
    assert do(View(path="calc.py", start=5)).output.startswith(b"     5\tdef double")
    listing = do(View(path="."))
    assert b"calc.py\n" in listing.output
    missing = do(View(path="nowhere.py"))
    assert (missing.exit_code, b"there is no file" in missing.output) == (1, True)


def test_edit_replaces_a_text_that_occurs_once(do, box):
    done = do(Edit(path=f"{box.workdir}/calc.py", old="a - b", new="a + b"))
    assert (done.exit_code, b"line 2" in done.output) == (0, True)
    assert do("cat calc.py").output == (b"def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n")


@pytest.mark.parametrize(("old", "says"), [("nothing", b"does not occur"), ("return", b"more than once")])
def test_edit_refuses_what_is_not_unique(do, old, says):
    refused = do(Edit(path="calc.py", old=old, new="x"))
    assert (refused.exit_code, says in refused.output) == (1, True)
    assert do("git diff").output == b""


def test_edit_counts_overlapping_places(do):
    do("printf 'aaa' > odd")
    assert b"more than once" in do(Edit(path="odd", old="aa", new="b")).output


def test_git_1_edit_keeps_bytes_line_ends_and_mode(do):
    do(r"printf 'one\r\ntwo \377\000\r\nend' > odd; chmod 750 odd")
    assert b"CRLF" in do(Edit(path="odd", old="one\ntwo", new="x")).output
    assert do(Edit(path="odd", old="one\r\n", new="1\r\n")).exit_code == 0
    assert do("cat odd; stat -c %a odd").output == b"1\r\ntwo \xff\x00\r\nend750\n"


def test_create_writes_a_new_file_and_its_folders(do):
    assert do(Create(path="new dir/it's.py", content="x = 'é'\n")).exit_code == 0
    assert do('cat "new dir/it\'s.py"').output == "x = 'é'\n".encode()
    again = do(Create(path="calc.py", content=""))
    assert (again.exit_code, b"exists" in again.output) == (1, True)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "/", "", "a/.."])
def test_paths_outside_of_the_tree_are_refused(do, path):
    for action in (View(path=path), Edit(path=path, old="a", new="b"), Create(path=path, content="")):
        refused = do(action)
        assert (refused.exit_code, b"not inside of" in refused.output) == (1, True)


def test_git_4_a_failed_write_is_a_result(do):
    refused = do(Create(path="calc.py/x.py", content="x"))
    assert (refused.exit_code, b"calc.py" in refused.output) == (1, True)
    assert do("git status --porcelain").output == b""
