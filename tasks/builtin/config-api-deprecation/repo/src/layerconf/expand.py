"""References to settings in texts."""

import re

_REFERENCE = re.compile(r"\$\{([^{}|]+)(?:\|([^{}]*))?\}")


def expand(text, config):
    """Replace ``${key}`` and ``${key|text if missing}`` in *text*.

    Raises MissingKeyError for a missing key without a text.
    """

    def value_of(match):
        key, text_if_missing = match.groups()
        if text_if_missing is None:
            return str(config.get(key))
        return str(config.get(key, fallback=text_if_missing))

    return _REFERENCE.sub(value_of, text)
