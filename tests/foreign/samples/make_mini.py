"""Makes the folder `mini` beside this file: `python make_mini.py mini`, where mini-swe-agent (2.4.6 here) is installed.

Its own agent and environment run its own scripted models on a calculator: nothing in the files is written by hand.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["MSWEA_SILENT_STARTUP"] = "1"
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models import test_models as scripted

OUT = Path(sys.argv[1]).absolute()
FIX = "sed -i 's/a - b/a + b/' calc.py"
NO_FIX = "sed -i 's/2 \\* a/a + a/' calc.py"
LOOK = "cat calc.py"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "test_calc.py": "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
}


def enter_repo():
    folder = Path(tempfile.mkdtemp())
    for name, text in FILES.items():
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "base"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    os.chdir(folder)


def text(*commands):
    texts = [(f"Step {n}.\n\n```bash\n{command}\n```", command) for n, command in enumerate(commands, 1)]
    return scripted.DeterministicModel(outputs=[scripted.make_output(said, [{"command": c}]) for said, c in texts])


def calls(*commands):
    outputs = []
    for n, command in enumerate(commands, 1):
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        action = {"command": command, "tool_call_id": f"call_{n}"}
        outputs.append(scripted.make_toolcall_output(f"Step {n}.", [call], [action]))
    return scripted.DeterministicToolcallModel(outputs=outputs)


def responses(*commands):
    actions = [{"command": command, "tool_call_id": f"call_{n}"} for n, command in enumerate(commands, 1)]
    outputs = [scripted.make_response_api_output(f"Step {n}.", [action]) for n, action in enumerate(actions, 1)]
    return scripted.DeterministicResponseAPIToolcallModel(outputs=outputs)


def run(name, model, **limits):
    enter_repo()
    templates = {"system_template": "You fix issues.", "instance_template": "Please fix: {{task}}"}
    agent = DefaultAgent(model, LocalEnvironment(), **templates, **limits)
    agent.run("add(2, 3) gives -1, it should give 5.")
    agent.save(OUT / name / "tiny-add" / "tiny-add.traj.json", {"instance_id": "tiny-add"})


run("text", text(LOOK, FIX, SUBMIT))
run("calls", calls(LOOK, FIX, SUBMIT))
run("responses", responses(LOOK, FIX, SUBMIT))
run("wrong", text(LOOK, NO_FIX, SUBMIT))
run("limit", text(LOOK, LOOK, LOOK), step_limit=2)
