"""Sandboxes in containers."""

from gagar_env.sandbox.docker.plans import keep_warm, plan_for
from gagar_env.sandbox.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox", "keep_warm", "plan_for"]
