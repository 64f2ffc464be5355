"""A to-do list for the shell."""

from chores.errors import ChoresError, StoreError
from chores.model import Chore, ChoreList

__all__ = ["Chore", "ChoreList", "ChoresError", "StoreError"]
