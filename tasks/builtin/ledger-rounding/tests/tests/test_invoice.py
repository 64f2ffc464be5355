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


def make_mixed_invoice(discount):
    invoice = Invoice("31", "Harbour Cafe", discount=discount)
    invoice.add_line("Book", 1, "10.00", tax_rate="0", account="4000")
    invoice.add_line("Beans", 1, "10.00", tax_rate="0.07", account="4001")
    invoice.add_line("Mug", 1, "10.00", tax_rate="0.20", account="4002")
    return invoice


def test_taxable_amounts_add_up_to_net():
    invoice = make_mixed_invoice("10.00")
    summary = invoice.tax_summary()
    assert [line.taxable for line in summary] == [
        Decimal("6.66"),
        Decimal("6.67"),
        Decimal("6.67"),
    ]
    assert [line.tax for line in summary] == [
        Decimal("0.00"),
        Decimal("0.47"),
        Decimal("1.33"),
    ]
    for cents in range(0, 3001, 7):
        invoice = make_mixed_invoice(Decimal(cents) / 100)
        taxable = sum(line.taxable for line in invoice.tax_summary())
        assert taxable == invoice.net


def test_left_over_cents_follow_the_lines():
    # Shares are 0.01 (first line), 0.01 (second) and 0.00 each for the rest,
    # although the rate of the last three lines has the larger amount.
    invoice = Invoice("32", "Harbour Cafe", discount="0.02")
    invoice.add_line("A", 1, "1.00", tax_rate="0.20")
    invoice.add_line("B", 1, "1.00", tax_rate="0.20")
    for name in "CDE":
        invoice.add_line(name, 1, "1.00", tax_rate="0.07")
    assert [(line.rate, line.taxable) for line in invoice.tax_summary()] == [
        (Decimal("0.07"), Decimal("3.00")),
        (Decimal("0.20"), Decimal("1.98")),
    ]


def test_left_over_cent_goes_to_the_largest_remainder():
    invoice = Invoice("33", "Harbour Cafe", discount="1.00")
    invoice.add_line("A", 1, "1.00", tax_rate="0.20")
    invoice.add_line("B", 1, "1.00", tax_rate="0.10")
    invoice.add_line("C", 2, "2.50", tax_rate="0")
    # Exact shares: 0.142..., 0.142..., 0.714...
    assert [line.taxable for line in invoice.tax_summary()] == [
        Decimal("4.28"),
        Decimal("0.86"),
        Decimal("0.86"),
    ]


def test_free_and_empty_invoices():
    assert Invoice("34", "Harbour Cafe").total == 0
    assert Invoice("34", "Harbour Cafe").tax_summary() == []
    invoice = Invoice("35", "Harbour Cafe")
    invoice.add_line("Sample", 2, "0.00", tax_rate="0.20")
    assert invoice.total == 0
    assert [line.taxable for line in invoice.tax_summary()] == [0]


def test_discount_of_the_whole_subtotal():
    invoice = make_mixed_invoice("30.00")
    assert invoice.total == 0
    assert [line.taxable for line in invoice.tax_summary()] == [0, 0, 0]
