"""Sandboxes in containers."""

from gagar_env.sandbox.docker.sandbox import DockerSandbox, keep_warm

__all__ = ["DockerSandbox", "keep_warm"]
