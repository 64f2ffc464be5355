"""What the README and the docstrings of tallybook say beyond the issue's own tests."""

from datetime import date
from decimal import Decimal

import pytest
from tallybook import (
    Invoice,
    Ledger,
    payment_plan,
    post_credit_note,
    post_invoice,
    render_invoice,
    split,
    trial_balance,
)


def invoice(discount="0.00", *lines):
    made = Invoice("7", "Ada", discount=discount)
    for number, (amount, rate) in enumerate(lines):
        made.add_line(f"line {number}", 1, amount, tax_rate=rate, account=f"40{number:02}")
    return made


def test_discount_on_nothing_is_not_booked():
    ledger = Ledger()
    with pytest.raises(ValueError, match=r"discount|weights"):
        post_invoice(ledger, invoice("5.00", ("0.00", "0.20")))
    assert ledger.entries == []


def test_bad_lines_are_refused():
    bill = invoice()
    with pytest.raises(ValueError, match="quantity must be positive"):
        bill.add_line("nothing", 0, "1.00")
    with pytest.raises(ValueError, match="unit price must not be negative"):
        bill.add_line("refund", 1, "-1.00")
    assert bill.lines == []


def test_split_needs_weights_even_for_nothing():
    for amount in ("0.00", "1.00"):
        with pytest.raises(ValueError, match="weights must add up to more than zero"):
            split(Decimal(amount), [Decimal(0), Decimal(0)])


def test_tax_is_worked_out_once_for_each_rate():
    bill = invoice("0.00", ("0.33", "0.05"), ("0.33", "0.05"), ("0.33", "0.05"), ("1.00", "0.10"))
    entry = post_invoice(Ledger(), bill)
    taxes = [(p.amount, p.memo) for p in entry.postings if p.account == "2200"]
    assert taxes == [(Decimal("-0.05"), "tax 0.05"), (Decimal("-0.10"), "tax 0.10")]


def test_entries_are_fixed_when_they_are_booked():
    bill = invoice("1.00", ("10.00", "0.20"))
    entry = post_invoice(Ledger(), bill)
    before = entry.postings
    bill.add_line("late", 1, "5.00")
    assert isinstance(entry.postings, tuple)
    assert entry.postings == before


def test_nothing_is_printed(capsys):
    bill = invoice("10.00", ("10.00", "0"), ("10.00", "0.07"), ("10.00", "0.20"))
    post_invoice(Ledger(), bill)
    render_invoice(bill)
    assert capsys.readouterr() == ("", "")


def test_invoice_and_credit_note_leave_nothing():
    ledger = Ledger()
    bill = invoice("3.33", ("9.99", "0.07"), ("0.05", "0.20"), ("1.11", "0"))
    assert post_invoice(ledger, bill).reference == "INV 7"
    assert post_credit_note(ledger, bill).reference == "CRN 7"
    assert {account: ledger.balance(account) for account in ledger.accounts()} == dict.fromkeys(
        ["1200", "2200", "4000", "4001", "4002"], Decimal(0)
    )
    assert all(debit == credit == 0 for _, debit, credit in trial_balance(ledger))


def test_rendered_invoice_agrees_with_the_books():
    bill = invoice("10.00", ("10.00", "0"), ("10.00", "0.07"), ("10.00", "0.20"))
    rows = render_invoice(bill).splitlines()
    assert len(set(map(len, rows[1:]))) == 1
    assert rows[-1].split()[-1] == str(post_invoice(Ledger(), bill).amount_on("1200"))


def test_payment_plan_of_a_discounted_invoice():
    bill = invoice("10.00", ("10.00", "0"), ("10.00", "0.07"), ("10.00", "0.20"))
    plan = payment_plan(bill, date(2024, 1, 31), 3)
    assert sum(part.amount for part in plan) == bill.total
    assert [part.due.isoformat() for part in plan] == ["2024-01-31", "2024-03-01", "2024-03-31"]
