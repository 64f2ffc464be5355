"""A small double-entry ledger with invoicing."""

from .invoice import Invoice, InvoiceLine, TaxLine
from .ledger import Entry, Ledger, Posting, UnbalancedEntryError
from .money import CENT, money, round_cents, split
from .posting import post_credit_note, post_invoice
from .report import render_invoice, trial_balance
from .schedule import Installment, payment_plan

__all__ = [
    "CENT",
    "Entry",
    "Installment",
    "Invoice",
    "InvoiceLine",
    "Ledger",
    "Posting",
    "TaxLine",
    "UnbalancedEntryError",
    "money",
    "payment_plan",
    "post_credit_note",
    "post_invoice",
    "render_invoice",
    "round_cents",
    "split",
    "trial_balance",
]
