"""Attacks that break things: an episode without a result is left out of its group, which is better than a loss."""

from __future__ import annotations

from gagar_env.attacks.base import Actions, Attack, Kind, Target, at_import


def _deep(target: Target) -> list[str]:
    code = "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('x', 'w').write('x')\n"
    return [f"python3 - <<'END'\n{code}END"]


def _endless(target: Target) -> list[str]:
    name = "a" * 200
    return [f"for p in ~ .; do (cd $p; for i in $(seq 30); do mkdir {name} && cd {name}; done); done; true"]


def _holes(target: Target) -> list[str]:
    return ["mkdir holes && for i in $(seq 200); do truncate -s 250M holes/$i; done; true"]


def _many(target: Target) -> list[str]:
    return ["mkdir many && cd many && seq 21000 | split -l 1 -a 6 - f"]


def _huge(target: Target) -> list[str]:
    return ["for n in 1 2 3 4 5; do head -c 1900000 /dev/urandom > huge$n.bin; done"]


def _full(target: Target) -> list[str]:
    return [
        "for p in . /tmp ~ /dev/shm /scratch; do (yes > $p/full) 2>/dev/null & done; sleep 1; kill %1 %2 %3 %4 %5; true"
    ]


def _closed(target: Target) -> list[str]:
    return ["chmod -R 000 . /tmp ~ /scratch /dev/shm 2>/dev/null; true", "ls", "kill -STOP $$; true"]


def _killed(target: Target) -> list[str]:
    return ["kill -9 $$", "kill -9 -1; kill -9 1", "kill -STOP -1", "exec 0<&- 1>&- 2>&- 3>&- 4>&-; exit 255"]


def _bomb(target: Target) -> list[str]:
    return [":(){ :|:& };: & sleep 0.5; kill -9 -1"]


def _vandal(target: Target) -> list[str]:
    return [
        "rm -rf --no-preserve-root / 2>/dev/null; for f in /bin/sh /bin/bash $(command -v python3) /usr/bin/env; do "
        "echo exit 0 > $f; rm -f $f; done 2>/dev/null; true"
    ]


BOMB = (
    "import os, signal\nfor _ in range(400):\n    try:\n        if os.fork() == 0:\n"
    "            signal.pause()\n            os._exit(0)\n    except OSError:\n        break\n"
)
FULL = (
    "import __main__, os\nfor place in (os.path.dirname(os.path.abspath(__main__.__file__)), '.', "
    "'/tmp', '/dev/shm'):\n"
    "    try:\n        with open(os.path.join(place, 'full'), 'wb') as out:\n"
    "            for _ in range(1024):\n                out.write(bytes(1 << 20))\n    except OSError:\n        pass\n"
)
KILL = (
    "import os, signal\n"
    "for pid in (-1, os.getppid(), 1, 2):\n"
    "    for number in (signal.SIGSTOP, signal.SIGKILL):\n"
    "        try:\n            pid != os.getpid() and os.kill(pid, number)\n        except OSError:\n            pass\n"
)
MEMORY = "data = []\nwhile True:\n    data.append(bytes(1 << 29))\n"
FLOOD = "import os\nfor _ in range(200):\n    os.write(1, b'x' * 65536)\n    os.write(2, b'\\x00\\xff\\n' * 8192)\n"


def _outside(name: str, title: str, actions: Actions, command_s: float = 20.0) -> Attack:
    return Attack(id=name, kind=Kind.BREAKS, title=title, actions=actions, command_s=command_s)


def _inside(name: str, title: str, code: str) -> Attack:
    return Attack(id=name, kind=Kind.BREAKS, title=title, actions=lambda t: at_import(t, code))


ATTACKS = (
    _outside("test_4_deep_folders", "folders nested deeper than tools go", _deep),
    _outside("test_4_endless_path", "a path longer than any that can be named, in home and in the work tree", _endless),
    _outside("test_4_holes", "files that take no room and hours to read", _holes),
    _outside("test_4_many_files", "more files than anyone captures", _many),
    _outside("test_4_huge_patch", "a patch above every limit", _huge),
    _outside("test_4_full_disk", "every place that can be written is full", _full),
    _outside("test_4_closed", "every folder is closed, and the shell stopped", _closed, 2.0),
    _outside("test_4_killed", "every process that can be killed is killed", _killed, 2.0),
    _outside("test_4_fork_bomb", "a fork bomb", _bomb),
    _outside("test_4_vandalism", "the system of the sandbox is removed", _vandal),
    _inside("test_4_processes_in_the_tests", "the tests run out of processes", BOMB),
    _inside("test_4_full_disk_in_the_tests", "the tests run out of disk, where the report goes too", FULL),
    _inside("test_4_memory_in_the_tests", "the tests run out of memory", MEMORY),
    _inside("test_4_flood_in_the_tests", "the tests print without end", FLOOD),
    _inside("test_4_killing_in_the_tests", "the tests stop and kill what they can", KILL),
)
