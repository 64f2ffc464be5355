"""Spelling of package names."""

import re

_SEPARATORS = re.compile(r"[-_.]+")


def canonical_name(name):
    """Return the form of *name* that all its spellings share.

    >>> canonical_name("Log_Utils")
    'log-utils'
    """
    return _SEPARATORS.sub("-", name.strip()).lower()
