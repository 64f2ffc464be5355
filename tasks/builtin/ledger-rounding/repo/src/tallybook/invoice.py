"""Invoices: lines, a discount on the whole invoice, and the tax summary."""

from dataclasses import dataclass
from decimal import Decimal

from .money import ZERO, money, round_cents


@dataclass(frozen=True)
class InvoiceLine:
    """One thing sold. `amount` is before discount and tax."""

    description: str
    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal
    account: str

    @property
    def amount(self):
        return round_cents(self.quantity * self.unit_price)


@dataclass(frozen=True)
class TaxLine:
    """What is taxed at one rate: the taxable amount, and the tax on it."""

    rate: Decimal
    taxable: Decimal
    tax: Decimal


class Invoice:
    """An invoice to one customer."""

    def __init__(self, number, customer, discount="0.00"):
        self.number = number
        self.customer = customer
        self.lines = []
        self.discount = money(discount)
        if self.discount < 0:
            raise ValueError("discount must not be negative")

    def add_line(self, description, quantity, unit_price, tax_rate="0", account="4000"):
        """Append a line and return it."""
        line = InvoiceLine(
            description=description,
            quantity=Decimal(quantity),
            unit_price=money(unit_price),
            tax_rate=Decimal(tax_rate),
            account=account,
        )
        if line.quantity <= 0:
            raise ValueError("quantity must be positive")
        if line.unit_price < 0:
            raise ValueError("unit price must not be negative")
        self.lines.append(line)
        return line

    @property
    def subtotal(self):
        """The sum of the lines, before discount and tax."""
        return sum((line.amount for line in self.lines), ZERO)

    @property
    def net(self):
        """What is left of the subtotal after the discount."""
        if self.discount > self.subtotal:
            raise ValueError("discount is larger than the subtotal")
        return self.subtotal - self.discount

    def tax_summary(self):
        """Return one `TaxLine` for each tax rate, lowest rate first."""
        amounts = {}
        for line in self.lines:
            amounts[line.tax_rate] = amounts.get(line.tax_rate, ZERO) + line.amount
        summary = []
        for rate, amount in sorted(amounts.items()):
            taxable = self._less_discount(amount)
            summary.append(TaxLine(rate, taxable, round_cents(taxable * rate)))
        return summary

    @property
    def tax(self):
        """The tax at all rates together."""
        return sum((line.tax for line in self.tax_summary()), ZERO)

    @property
    def total(self):
        """What the customer has to pay."""
        return self.net + self.tax

    def _less_discount(self, amount):
        """Take the discount's share off `amount`, a part of the subtotal."""
        if not self.discount:
            return amount
        return amount - round_cents(self.discount * amount / self.subtotal)
