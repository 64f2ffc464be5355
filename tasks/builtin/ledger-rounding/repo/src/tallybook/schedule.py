"""Payment plans: an invoice paid in several installments."""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from .money import split


@dataclass(frozen=True)
class Installment:
    """One payment of a plan."""

    due: date
    amount: Decimal


def payment_plan(invoice, first_due, count, every_days=30):
    """Split the total of `invoice` into `count` installments.

    The installments are equal up to a cent, and the larger ones come first.
    """
    if count < 1:
        raise ValueError("a plan needs at least one installment")
    amounts = split(invoice.total, [1] * count)
    return [
        Installment(first_due + timedelta(days=every_days * index), amount)
        for index, amount in enumerate(amounts)
    ]
