from datetime import date
from decimal import Decimal

import pytest

from tallybook import Invoice, payment_plan, render_invoice


def make_invoice(discount="0.00"):
    invoice = Invoice("7", "Harbour Cafe", discount=discount)
    invoice.add_line("Beans", 4, "18.50", tax_rate="0.07")
    invoice.add_line("Service", 1, "120.00", tax_rate="0.20", account="4100")
    return invoice


def test_totals_without_discount():
    invoice = make_invoice()
    assert invoice.subtotal == Decimal("194.00")
    assert invoice.tax == Decimal("29.18")
    assert invoice.total == Decimal("223.18")


def test_tax_is_worked_out_once_per_rate():
    invoice = Invoice("8", "Harbour Cafe")
    for _ in range(3):
        invoice.add_line("Sticker", 1, "0.33", tax_rate="0.05")
    (line,) = invoice.tax_summary()
    assert line.taxable == Decimal("0.99")
    assert line.tax == Decimal("0.05")


def test_discount_larger_than_subtotal_is_refused():
    with pytest.raises(ValueError):
        make_invoice(discount="200.00").total


def test_render_invoice_with_discount():
    text = render_invoice(make_invoice(discount="19.40"))
    assert "Net                                       174.60" in text
    assert "Tax 7% on 66.60                             4.66" in text
    assert "Total                                     200.86" in text


def test_payment_plan_adds_up():
    plan = payment_plan(make_invoice(), date(2024, 1, 31), 3)
    assert [part.amount for part in plan] == [
        Decimal("74.40"),
        Decimal("74.39"),
        Decimal("74.39"),
    ]
    assert plan[2].due == date(2024, 3, 31)
