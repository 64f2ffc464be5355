"""Stands in for packages that a learner imports beside its advantage maths: kernels, inference engines, loggers.

Whatever is asked of such a package is a class that does nothing; as a decorator it changes nothing. The learner's own
code is never replaced.
"""

import importlib.abc
import importlib.machinery
import sys


class _Kind(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Kind(name, (_Nothing,), {})

    def __getitem__(cls, _):
        return cls


class _Nothing(metaclass=_Kind):
    def __new__(cls, *args, **kwargs):
        return args[0] if args and callable(args[0]) else super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, given=None, *args, **kwargs):
        return given


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if top in self.names else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__getattr__ = _Nothing.__class__.__getattr__.__get__(_Nothing)


def absent(*names):
    sys.meta_path.insert(0, _Finder(frozenset(names)))
