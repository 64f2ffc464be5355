"""A package that is installed runs nothing on this machine, whatever it brings: its code is for sandboxes."""

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError
from gagar_env.tasks.task import Environment

pytestmark = pytest.mark.slow


def a_wheel(folder: Path, name: str, files: dict[str, str]) -> None:
    info = f"{name}-1.0.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        for path, text in files.items()
    }
    record = "".join(f"{path},sha256={digests[path]},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(path, text)


def test_what_a_package_starts_with_python_is_not_run_when_the_next_one_fails(tmp_path: Path, monkeypatch) -> None:
    ran = tmp_path / "ran"
    for name in ("aaa", "zzz"):
        a_wheel(tmp_path, name, {f"{name}.pth": f"import sys; open({str(ran)!r}, 'w').close()\n"})
    a_wheel(tmp_path, "mmm", {"../../../../outside.py": "x = 1\n"})  # pip finds that out when one of them is in
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(EnvironmentBuildError, match="pip cannot install"):
        prepare_environment(Environment(requirements=("aaa==1.0", "mmm==1.0", "zzz==1.0")))
    assert not ran.exists()
    assert prepare_environment(Environment(requirements=("aaa==1.0",))).python
    assert not ran.exists()
