"""What the sandbox of a test run is made from, and how its texts are shown."""

from __future__ import annotations

from dataclasses import replace

from gagar_env.image_env import trusted_variables
from gagar_env.provision import Provision
from gagar_env.sandbox.base import SandboxSpec

FIXED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
"""Variables of every test run. A task's own win."""
_REMOVED = ("PYTEST_", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "LD_")
_OUTPUT_CHARS = 8000


def run_spec(ready: Provision, *, rooms: tuple[str, ...] = ()) -> tuple[SandboxSpec, tuple[str, ...]]:
    """The fresh sandbox of a test run, and the folders of the work tree that the image imports from.

    It has the image as the tests know it: what is hidden from an agent is there.
    """
    image = ready.official_image or ready.spec.image
    over, imported = trusted_variables(image)
    env = {k: v for k, v in ready.spec.env.items() if not k.startswith(_REMOVED)}
    return replace(ready.spec, image=image, env={**over, **FIXED, **env}, pythonpath=(), rooms=rooms), imported


def one_line(text: str) -> str:
    """Any text as one line of valid Unicode."""
    return " ".join(text.encode("utf-8", "backslashreplace").decode("utf-8").split())[:1000]


def tail(output: bytes) -> str:
    """The end of what a run printed, as a report shows it."""
    return output.decode("utf-8", "replace")[-_OUTPUT_CHARS:]
