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


def make_mixed_invoice(discount):
    invoice = Invoice("31", "Harbour Cafe", discount=discount)
    invoice.add_line("Book", 1, "10.00", tax_rate="0", account="4000")
    invoice.add_line("Beans", 1, "10.00", tax_rate="0.07", account="4001")
    invoice.add_line("Mug", 1, "10.00", tax_rate="0.20", account="4002")
    return invoice


def test_receivable_equals_invoice_total():
    invoice = make_mixed_invoice("10.00")
    ledger = Ledger()
    entry = post_invoice(ledger, invoice)
    assert invoice.total == Decimal("21.80")
    assert entry.postings == (
        Posting("1200", Decimal("21.80"), "Harbour Cafe"),
        Posting("4000", Decimal("-6.66"), "Book"),
        Posting("4001", Decimal("-6.67"), "Beans"),
        Posting("4002", Decimal("-6.67"), "Mug"),
        Posting("2200", Decimal("-0.47"), "tax 0.07"),
        Posting("2200", Decimal("-1.33"), "tax 0.20"),
    )
    assert ledger.balance("1200") == invoice.total


def test_tax_is_posted_as_on_the_invoice():
    invoice = Invoice("8", "Harbour Cafe")
    for _ in range(3):
        invoice.add_line("Sticker", 1, "0.33", tax_rate="0.05")
    entry = post_invoice(Ledger(), invoice)
    assert entry.postings == (
        Posting("1200", Decimal("1.04"), "Harbour Cafe"),
        Posting("4000", Decimal("-0.33"), "Sticker"),
        Posting("4000", Decimal("-0.33"), "Sticker"),
        Posting("4000", Decimal("-0.33"), "Sticker"),
        Posting("2200", Decimal("-0.05"), "tax 0.05"),
    )


def test_revenue_matches_the_taxable_amounts():
    invoice = Invoice("33", "Harbour Cafe", discount="1.00")
    invoice.add_line("A", 1, "1.00", tax_rate="0.20", account="4020")
    invoice.add_line("B", 1, "1.00", tax_rate="0.10", account="4010")
    invoice.add_line("C", 2, "2.50", tax_rate="0", account="4000")
    invoice.add_line("D", 3, "0.35", tax_rate="0.10", account="4010")
    entry = post_invoice(Ledger(), invoice)
    accounts = {"0": "4000", "0.10": "4010", "0.20": "4020"}
    for line in invoice.tax_summary():
        assert entry.amount_on(accounts[str(line.rate)]) == -line.taxable
    # Exact shares: 0.124..., 0.124..., 0.621..., 0.130...
    assert [p.amount for p in entry.postings[1:5]] == [
        Decimal("-0.87"),
        Decimal("-0.88"),
        Decimal("-4.38"),
        Decimal("-0.92"),
    ]


def test_credit_note_of_discounted_invoice():
    invoice = make_mixed_invoice("10.00")
    entry = post_credit_note(Ledger(), invoice)
    assert entry.reference == "CRN 31"
    assert entry.amount_on("1200") == -invoice.total
    assert entry.amount_on("4000") == Decimal("6.66")
    assert entry.amount_on("2200") == invoice.tax


def test_books_and_invoice_agree_for_every_discount():
    for cents in range(0, 800, 3):
        invoice = Invoice("36", "Harbour Cafe", discount=Decimal(cents) / 100)
        invoice.add_line("A", 3, "0.33", tax_rate="0.05", account="4005")
        invoice.add_line("B", 1, "0.19", tax_rate="0.05", account="4005")
        invoice.add_line("C", 7, "0.77", tax_rate="0.20", account="4020")
        invoice.add_line("D", 1, "1.49", tax_rate="0.20", account="4020")
        entry = post_invoice(Ledger(), invoice)
        assert entry.amount_on("1200") == invoice.total
        reduced, full = invoice.tax_summary()
        assert entry.amount_on("4005") == -reduced.taxable
        assert entry.amount_on("4020") == -full.taxable
        assert [p.amount for p in entry.postings[-2:]] == [-reduced.tax, -full.tax]


def test_free_invoice_can_be_posted():
    invoice = Invoice("35", "Harbour Cafe")
    invoice.add_line("Sample", 2, "0.00", tax_rate="0.20")
    entry = post_invoice(Ledger(), invoice)
    assert [p.account for p in entry.postings] == ["1200", "4000", "2200"]
    assert all(p.amount == 0 for p in entry.postings)
