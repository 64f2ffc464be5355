"""What to tell a user whose container engine does not answer."""

from __future__ import annotations

from gagar_env.engine_address import Address


def one_line(error: BaseException) -> str:
    """What an error of the client says, without the address it called."""
    text = getattr(error, "explanation", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:500]


def explain(error: Exception, to: Address) -> str:
    """Why the engine at that address cannot be used, and what to do."""
    place = f"{to.socket or to.url} ({to.named_by})"
    system = _system_error(error)
    text = one_line(error)
    if isinstance(system, PermissionError):
        why = f"no permission for the container engine's socket {place}: add yourself to its group (usermod -aG docker"
        why += " USER, then log in again), or run as root"
    elif isinstance(system, (FileNotFoundError, ConnectionRefusedError)) and not to.url.startswith("ssh://"):
        state = "is not there" if isinstance(system, FileNotFoundError) else "does not answer"
        why = f"no container engine: {place} {state}: is dockerd running? Start it, or set DOCKER_HOST"
    elif "paramiko" in text:
        why = f"the container engine at {place} is reached by ssh, which needs paramiko: pip install 'docker[ssh]'"
    elif "HTTP request to an HTTPS server" in text:
        why = f"the container engine at {place} wants TLS: set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH"
    else:
        why = f"no container engine answers at {place}: {system.strerror if system else text}"
    return why


def _system_error(error: BaseException) -> OSError | None:
    """The error of the operating system in what the libraries wrapped around it."""
    seen: set[int] = set()
    queue: list[object] = [error]
    while queue:
        found = queue.pop(0)
        if not isinstance(found, BaseException) or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, OSError) and found.errno is not None:
            return found
        queue += [*found.args, getattr(found, "reason", None), found.__cause__, found.__context__]
    return None
