"""The beginning of programs that use one cache side by side."""

COMMON = """
import os, random, signal, sys, threading, time
from pathlib import Path
from gagar_env import cache, cache_room
from gagar_env.cache import build_once
def builder(key, pause=0.0):
    def build(entry):
        assert not list(entry.iterdir())
        for number in range(12):
            (entry / f"f{number}").write_text(key * 50)
            time.sleep(pause / 12)
    return build
def whole(entry, key):
    return sorted(p.name for p in entry.iterdir()) == sorted(f"f{n}" for n in range(12)) and all(
        p.read_text() == key * 50 for p in entry.iterdir())
"""
