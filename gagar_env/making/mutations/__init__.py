"""Bugs that are put into Python code by edits of its syntax tree, lossless elsewhere.

`find_sites` lists where and how a file can be broken, `sample` chooses among the sites of many files, and `mutate`
gives the broken text. One module of this package is one kind of bug.

Needs the `make` extra (libcst), which is imported with the first file that is read.
"""

from __future__ import annotations

from gagar_env.making.mutations.kinds import KINDS, PAIR, check_kinds
from gagar_env.making.mutations.sampling import sample
from gagar_env.making.mutations.source import Edit, Site, find_sites, mutate

__all__ = ["KINDS", "PAIR", "Edit", "Site", "check_kinds", "find_sites", "mutate", "sample"]
