"""Many writers, writers that are killed, and a disk that is full: real threads, processes and file systems."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gagar_env.errors import GagarError
from gagar_env.store import RunFolder, summarize, verify_run
from gagar_env.store.lock import driving, is_driven

WRITER = Path(__file__).with_name("writer.py")


def writer(folder, name, count, **options):
    command = [sys.executable, str(WRITER), str(folder.path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def check_whole(folder, names):
    """All of these groups are there, once, with all their episodes."""
    found = [result.group_id for result in folder.groups()]
    assert sorted(found) == sorted(names)
    assert [fault for fault in verify_run(folder) if not fault.harmless] == []


def test_disk_2_threads_append_to_one_run(tmp_path, make_group):
    folder = RunFolder.create(tmp_path / "run")
    groups = [make_group(f"g{number}") for number in range(16)]

    def work(part):
        for result, episodes in part:
            folder.add(result, episodes)

    threads = [threading.Thread(target=work, args=(groups[start::8],)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_whole(folder, [result.group_id for result, _ in groups])


@pytest.mark.slow
def test_disk_2_eight_processes_append_to_one_run(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    writers = [writer(folder, f"w{number}", 6) for number in range(8)]
    said = [name for each in writers for name in each.communicate(timeout=120)[0].split()]
    assert len(said) == 48
    check_whole(folder, said)
    assert len(folder.metrics()) == 48


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_disk_2_writers_that_are_killed_cost_no_group_that_they_finished(tmp_path, seed):
    folder, chance = RunFolder.create(tmp_path / "run", {"group_count": 0}), random.Random(seed)
    finished = []
    for turn in range(4):
        each = writer(folder, f"k{turn}", -1)
        finished.append(each.stdout.readline().strip())
        time.sleep(chance.uniform(0, 0.15))
        each.send_signal(signal.SIGKILL)
        finished += each.communicate(timeout=60)[0].split()
    found = {result.group_id for result in folder.groups()}
    assert set(finished) <= found
    assert len(found) <= len(finished) + 4  # written, and killed before it could say so
    check_whole(folder, found)
    last = writer(folder, "last", 2)
    check_whole(folder, [*found, *last.communicate(timeout=60)[0].split()])


def test_disk_2_a_torn_line_costs_no_other_line(tmp_path, make_group):
    folder = RunFolder.create(tmp_path / "run", {"group_count": 1})
    result, episodes = make_group()
    (folder.path / "groups.jsonl").write_bytes(b'{"group_id": "to')
    folder.add(result, episodes, attempt=0)
    assert list(folder.groups()) == [result]
    assert summarize(folder).state == "complete"


FILL = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from writer import group
from gagar_env.errors import GagarError
from gagar_env.store import RunFolder, verify_run
folder = RunFolder.create(Path(sys.argv[2]) / "run")
done = []
try:
    for number in range(100):
        result, episodes = group(f"g{number}")
        folder.add(result, episodes)
        done.append(result)
except GagarError as error:
    assert "No space left on device; what is written stays" in str(error), error
    assert "\\n" not in str(error)
assert 0 < len(done) < 100, len(done)
assert list(folder.groups()) == done
assert not [fault for fault in verify_run(folder) if not fault.harmless]
assert not list(folder.path.rglob("*.part"))
(Path(sys.argv[2]) / "ballast").unlink()
result, episodes = group("more")
folder.add(result, episodes)
assert list(folder.groups()) == [*done, result]
print("whole", len(done))
"""


@pytest.mark.slow
def test_disk_2_a_full_disk_is_told_in_one_line_and_costs_nothing_that_is_there(tmp_path):
    unshare = shutil.which("unshare")
    inside = "mount -t tmpfs -o size=600k tmpfs {0} && head -c 200k /dev/zero > {0}/ballast && exec {1} -c {2}"
    command = [sys.executable, str(WRITER.parent), str(tmp_path)]
    script = inside.format(tmp_path, command[0], '"$FILL" "$1" "$2"')
    done = subprocess.run(
        [unshare or "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *command[1:]],
        env={**os.environ, "FILL": FILL},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no file system of its own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("whole ")


def test_one_process_drives_a_run_at_a_time(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {"group_count": 1})
    assert not is_driven(folder.path)
    with driving(folder.path):
        assert is_driven(folder.path)
        assert summarize(folder).state == "running"
        with pytest.raises(GagarError, match="another process is working on this run"), driving(folder.path):
            pass
    assert summarize(folder).state == "stopped"
