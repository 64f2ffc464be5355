"""Book invoices and credit notes into a ledger."""

from .ledger import Posting
from .money import ZERO, round_cents

RECEIVABLE = "1200"
SALES_TAX = "2200"


def post_invoice(ledger, invoice):
    """Book `invoice` and return the entry.

    The customer's debt is a debit on accounts receivable. Against it stand
    one credit for each invoice line, on the account of the line, and one
    credit on the sales tax account for each tax rate above zero.
    """
    return ledger.add(f"INV {invoice.number}", _postings(invoice))


def post_credit_note(ledger, invoice):
    """Book the reversal of `invoice` and return the entry."""
    reversed_postings = [
        Posting(posting.account, -posting.amount, posting.memo)
        for posting in _postings(invoice)
    ]
    return ledger.add(f"CRN {invoice.number}", reversed_postings)


def _postings(invoice):
    """Return the postings of `invoice`, the receivable first."""
    credits = []
    taxes = {}
    for line in invoice.lines:
        revenue = _revenue(invoice, line)
        credits.append(Posting(line.account, -revenue, line.description))
        if line.tax_rate:
            tax = round_cents(revenue * line.tax_rate)
            taxes[line.tax_rate] = taxes.get(line.tax_rate, ZERO) + tax
    for rate, tax in sorted(taxes.items()):
        credits.append(Posting(SALES_TAX, -tax, f"tax {rate}"))
    receivable = -sum((posting.amount for posting in credits), ZERO)
    return [Posting(RECEIVABLE, receivable, invoice.customer), *credits]


def _revenue(invoice, line):
    """Return the amount of `line` less its share of the discount."""
    if not invoice.discount:
        return line.amount
    return line.amount - round_cents(invoice.discount * line.amount / invoice.subtotal)
