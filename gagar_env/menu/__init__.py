"""Menus: a finite list of actions for each task, for agents that choose by number and cannot write."""

from __future__ import annotations

from gagar_env.menu.build import MenuRules, build_menu
from gagar_env.menu.entries import Entry, EntryKind, Menu

__all__ = ["Entry", "EntryKind", "Menu", "MenuRules", "build_menu"]
