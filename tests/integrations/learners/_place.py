"""Installs what a check of a learner needs into folders of their own, beside the environment of the tests.

Without their dependencies: torch and transformers are the tests' own, engines and kernels have stand-ins (`_absent`).
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path.home() / ".cache" / "gagar-env-test-learners"
SUPPORT = (
    "aiohappyeyeballs", "aiohttp", "aiosignal", "antlr4-python3-runtime==4.9.3", "attrs", "click", "cloudpathlib",
    "codetiming", "colorama", "colorlog", "einops", "frozenlist", "httpcore", "httpx", "hydra-core==1.3.8",
    "jaxtyping", "jsonschema", "jsonschema-specifications", "lark", "loguru", "msgpack", "multidict",
    "omegaconf==2.4.0", "peft", "propcache", "psutil", "pybase64", "pydantic-settings", "pylatexenc",
    "python-dotenv", "referencing", "rpds-py", "skyrl-gym==0.4.0", "tabulate", "tenacity", "wadler-lindig", "yarl",
)  # fmt: skip
RELEASES = {
    "areal": "areal==1.0.4",
    "art": "openpipe-art==0.5.23",
    "openrlhf": "openrlhf==0.11.2",
    "skyrl": "skyrl==0.4.0",
    "verl": "verl==0.9.1",
}


def installed(*packages: str) -> Path:
    """The folder that holds exactly these, made once for each Python and list."""
    key = hashlib.sha256(repr((sys.version_info[:2], packages)).encode()).hexdigest()[:16]
    folder = HOME / f"{packages[0].split('=')[0]}-{key}"
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = folder.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
                    *("--ignore-requires-python", "--no-compile", "--target", str(half), *packages),
                ],
                check=True,
                capture_output=True,
                text=True,
                timeout=300,
            )
            half.rename(folder)
    return folder
