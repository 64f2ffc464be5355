"""Rules of the pass-through guard as data: what each learner does to an advantage on its way into the loss.

One module for each learner, found by its place in this folder; each has `RULES`, a tuple of `LearnerRules`. No module
here imports a learner.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from gagar_env.integrations._rules._shape import LearnerRules as LearnerRules
from gagar_env.integrations._rules._shape import Rule as Rule


@cache
def all_rules() -> dict[str, LearnerRules]:
    """Every table by the name of its learner, in alphabetical order.

    Raises:
        ValueError: If two tables have one name.
    """
    found: dict[str, LearnerRules] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")):
        for rules in importlib.import_module(f"{__name__}.{module}").RULES:
            if rules.learner in found:
                raise ValueError(f"two tables of rules are named {rules.learner!r}")
            found[rules.learner] = rules
    return dict(sorted(found.items()))
