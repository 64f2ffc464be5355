"""Layers from text and from the environment.

Every function returns a flat dict with dotted, lower-case keys.
"""

from .errors import ConfigError


def parse_ini(text):
    """Read ``[section]`` headers and ``name = value`` lines."""
    values = {}
    prefix = ""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            prefix = line[1:-1].strip().lower() + "."
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"line {number}: expected 'name = value', found {line!r}")
        values[prefix + name.strip().lower()] = value.strip()
    return values


def from_environ(environ, prefix):
    """Take the variables that start with *prefix*; ``__`` stands for a dot."""
    return {
        name[len(prefix):].lower().replace("__", "."): value
        for name, value in environ.items()
        if name.startswith(prefix)
    }
