"""The ledger: balanced entries, and account balances."""

from dataclasses import dataclass
from decimal import Decimal

from .money import ZERO


class UnbalancedEntryError(ValueError):
    """Raised for an entry whose postings do not add up to zero."""


@dataclass(frozen=True)
class Posting:
    """An amount on one account: debits are positive, credits negative."""

    account: str
    amount: Decimal
    memo: str = ""


@dataclass(frozen=True)
class Entry:
    """A set of postings that belong together."""

    reference: str
    postings: tuple

    @property
    def imbalance(self):
        return sum((posting.amount for posting in self.postings), ZERO)

    def amount_on(self, account):
        """Return the sum of this entry's postings on `account`."""
        return sum((p.amount for p in self.postings if p.account == account), ZERO)


class Ledger:
    """An append-only list of balanced entries."""

    def __init__(self):
        self.entries = []

    def add(self, reference, postings):
        """Append an entry made of `postings` and return it."""
        entry = Entry(reference, tuple(postings))
        if entry.imbalance:
            raise UnbalancedEntryError(f"{reference}: off by {entry.imbalance}")
        self.entries.append(entry)
        return entry

    def balance(self, account):
        """Return the balance of `account` over all entries."""
        return sum((entry.amount_on(account) for entry in self.entries), ZERO)

    def accounts(self):
        """Return the numbers of all accounts in use, sorted."""
        return sorted({p.account for entry in self.entries for p in entry.postings})
