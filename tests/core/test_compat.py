"""What hides the differences between versions of Python."""

import ast
import gc
import sys
import threading

import pytest

from gagar_env._compat import parse_python

DEEP = "x = " + "(" * 40 + "1" + " + 1)" * 40 + "\n"


class Busy:
    """Is collected in the middle of something, and gives other threads time to run then."""

    def __init__(self):
        self.me = self

    def __del__(self):
        for _ in range(300):
            pass


def test_sources_are_parsed_in_many_threads():
    faults = []

    def work():
        try:
            for _ in range(200):
                Busy()
                assert isinstance(parse_python(DEEP), ast.Module)
        except BaseException as fault:
            faults.append(fault)

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(5)
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
    assert faults == []


@pytest.mark.parametrize(("source", "error"), [("x = (", SyntaxError), ("x\0", (SyntaxError, ValueError))])
def test_faults_of_the_source_are_told(source, error):
    with pytest.raises(error):
        parse_python(source)
