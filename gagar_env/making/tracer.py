"""Runs pytest on a work tree and writes down which lines of its code the tests of each file run.

This file is copied into a sandbox and run there by the task's own Python (3.6 and newer): it imports nothing of this
package. What it writes only helps to choose where a bug is put in; nothing is believed because of it.

    PYTHON -s -B tracer.py job.json

The trace is one line of JSON for each test file, written when the tests of the next one begin, so that a run that is
cut off leaves what it has. A first line, without a file, is for what ran before any test: at import.
"""

import json
import os
import sys
import threading
import time


class Tracer:
    """The plugin. Lines are counted by the number of tests that run them, not by how often."""

    def __init__(self, root, codes, place):
        self.root = root + os.sep
        self.codes = frozenset(codes)
        self.place = place
        self.paths = {}
        self.sizes = {}
        self.seen = {}
        self.file = None
        self.begun = 0.0
        self.tests = 0
        self.counts = {}
        self.loading = True

    def _path(self, filename):
        """The path of a file of the work tree whose lines are wanted, relative to it; else an empty string."""
        if filename not in self.paths:
            real = os.path.realpath(filename)
            path = real[len(self.root) :] if real.startswith(self.root) else ""
            self.paths[filename] = path if path in self.codes else ""
        return self.paths[filename]

    def _size(self, code):
        if code not in self.sizes:
            if hasattr(code, "co_lines"):
                self.sizes[code] = len({line for _, _, line in code.co_lines() if line})
            else:
                self.sizes[code] = 1 << 30
        return self.sizes[code]

    def __call__(self, frame, event, arg):
        """Python calls this for each call of a function."""
        code = frame.f_code
        lines = self.seen.get(code)
        if lines is None:
            if not self._path(code.co_filename):
                return None
            lines = self.seen[code] = set()
        elif len(lines) >= self._size(code):
            return None  # this test ran all of it already
        add = lines.add

        def local(frame, event, arg):
            if event == "line":
                add(frame.f_lineno)
            return local

        add(frame.f_lineno)
        return local

    def pytest_runtest_logstart(self, nodeid, location):
        """A test begins."""
        if self.loading:  # what ran so far ran at import
            self.loading = False
            self.file, self.begun, self.tests = "", time.time(), 1
            self._count()
        file = nodeid.partition("::")[0]
        if file != self.file:
            self.flush()
            self.file, self.begun = file, time.time()
        self.seen = {}
        sys.settrace(self)
        threading.settrace(self)

    def pytest_runtest_logfinish(self, nodeid, location):
        """A test ends."""
        sys.settrace(None)
        threading.settrace(None)
        self.tests += 1
        self._count()

    def _count(self):
        for code, lines in self.seen.items():
            counts = self.counts.setdefault(self._path(code.co_filename), {})
            for line in lines:
                counts[line] = counts.get(line, 0) + 1
        self.seen = {}

    def flush(self):
        """Write what the tests of one file ran."""
        if self.file is not None and self.tests:
            lines = {path: sorted(counts.items()) for path, counts in self.counts.items()}
            seconds = round(time.time() - self.begun, 3)
            record = {"file": self.file, "tests": self.tests, "seconds": seconds, "lines": lines}
            with open(self.place, "a") as stream:
                stream.write(json.dumps(record) + "\n")
        self.file, self.tests, self.counts = None, 0, {}

    def pytest_sessionfinish(self, session):
        """All tests ended."""
        sys.settrace(None)
        self.flush()


def main():
    """Read the job and run it."""
    with open(sys.argv[1]) as stream:
        job = json.load(stream)
    folders = [os.path.abspath(folder) for folder in job["pythonpath"]]
    sys.path[0:1] = [os.getcwd()] + folders
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    import pytest

    tracer = Tracer(os.path.realpath(os.getcwd()), job["codes"], job["place"])
    sys.settrace(tracer)
    for more in ([], ["-o", "addopts="]):
        code = pytest.main(job["arguments"] + more + job["files"], plugins=[tracer])
        if int(code) != 4:  # options that this environment does not know
            break
    os._exit(0)


if __name__ == "__main__":
    main()
