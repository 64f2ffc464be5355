from decimal import Decimal

import pytest

from tallybook import (
    Invoice,
    Ledger,
    Posting,
    UnbalancedEntryError,
    post_credit_note,
    post_invoice,
    trial_balance,
)


def make_invoice(discount="0.00"):
    invoice = Invoice("7", "Harbour Cafe", discount=discount)
    invoice.add_line("Beans", 4, "18.50", tax_rate="0.07")
    invoice.add_line("Service", 1, "120.00", tax_rate="0.20", account="4100")
    return invoice


def test_unbalanced_entries_are_refused():
    with pytest.raises(UnbalancedEntryError):
        Ledger().add("X", [Posting("1200", Decimal("1.00"))])


def test_post_invoice():
    ledger = Ledger()
    entry = post_invoice(ledger, make_invoice(discount="19.40"))
    assert entry.reference == "INV 7"
    assert entry.postings == (
        Posting("1200", Decimal("200.86"), "Harbour Cafe"),
        Posting("4000", Decimal("-66.60"), "Beans"),
        Posting("4100", Decimal("-108.00"), "Service"),
        Posting("2200", Decimal("-4.66"), "tax 0.07"),
        Posting("2200", Decimal("-21.60"), "tax 0.20"),
    )


def test_credit_note_reverses_the_invoice():
    ledger = Ledger()
    invoice = make_invoice(discount="5.00")
    post_invoice(ledger, invoice)
    post_credit_note(ledger, invoice)
    assert all(ledger.balance(account) == 0 for account in ledger.accounts())


def test_trial_balance():
    ledger = Ledger()
    post_invoice(ledger, make_invoice())
    assert trial_balance(ledger) == [
        ("1200", Decimal("223.18"), Decimal("0.00")),
        ("2200", Decimal("0.00"), Decimal("29.18")),
        ("4000", Decimal("0.00"), Decimal("74.00")),
        ("4100", Decimal("0.00"), Decimal("120.00")),
    ]
