"""What is written is read back by TensorBoard's own reader."""

import math
import signal
import struct
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gagar_env.loggers import TensorBoardLogger
from gagar_env.loggers.eventfile import EventFile, crc32c

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

WRITE = """
import os, signal, sys
from gagar_env.loggers import TensorBoardLogger
logger = TensorBoardLogger(sys.argv[1], first_step=int(sys.argv[2]))
for step in range(int(sys.argv[2]), int(sys.argv[3])):
    logger.log(step, {"pass_rate": step / 8})
os.kill(os.getpid(), signal.SIGKILL)
"""


def events(path):
    return list(LegacyEventFileLoader(str(path)).Load())


def scalars(path):
    return [(event.step, value.tag, value.simple_value) for event in events(path) for value in event.summary.value]


def as_float32(number):
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def test_checksum_of_the_rfc():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    step=st.integers(0, 2**63 - 1),
    numbers=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60),
        max_size=4,
    ),
)
def test_any_numbers_come_back(tmp_path, step, numbers):
    file = EventFile(tmp_path)
    file.add(step, numbers)
    file.close()
    assert scalars(file.path) == [(step, name, as_float32(number)) for name, number in numbers.items()]
    file.path.unlink()


@pytest.mark.slow
def test_what_was_logged_outlives_a_kill_and_a_resumed_run_hides_the_rest(tmp_path):
    for first, end in ((0, 5), (3, 7)):
        done = subprocess.run([sys.executable, "-c", WRITE, str(tmp_path), str(first), str(end)], check=False)
        assert done.returncode == -signal.SIGKILL
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert len(list(tmp_path.iterdir())) == 2
    board = EventAccumulator(str(tmp_path), purge_orphaned_data=True)
    board.Reload()
    shown = [(event.step, event.value) for event in board.Scalars("pass_rate")]
    assert shown == [(step, step / 8) for step in range(7)]


def test_two_loggers_of_one_second_do_not_share_a_file(tmp_path):
    first, second = TensorBoardLogger(tmp_path), TensorBoardLogger(tmp_path)
    first.log(0, {"a": 1})
    second.log(0, {"b": 2, "not drawn": math.nan})
    first.close()
    second.close()
    second.close()
    second.log(1, {"late": 1})
    assert sorted(name for path in tmp_path.iterdir() for _, name, _ in scalars(path)) == ["a", "b"]


def test_a_full_disk_raises_at_once(tmp_path):
    file = EventFile(tmp_path)
    file._file.close()
    file._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        file.add(1, {"a": 1.0})
    file.close()
