"""Conversion of text values."""

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def to_int(value):
    """Return *value* as an int; underscores between digits are fine."""
    return int(value)


def to_bool(value):
    """Return *value* as a bool; accepts the usual words in any case."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(word)


def to_list(value):
    """Return the parts of a comma separated text, or a list of any other iterable."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value)
