import doctest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_examples():
    assert doctest.testfile(str(README), module_relative=False).failed == 0
