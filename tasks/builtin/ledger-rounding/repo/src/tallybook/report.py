"""Plain-text reports."""

from .money import ZERO

WIDTH = 48


def _row(label, amount):
    """Format a label and a right-aligned amount."""
    return f"{label:<{WIDTH - 12}}{amount:>12}"


def render_invoice(invoice):
    """Return `invoice` as text: lines, discount, tax summary and total."""
    rows = [f"Invoice {invoice.number} for {invoice.customer}", "-" * WIDTH]
    rows += [_row(line.description, line.amount) for line in invoice.lines]
    if invoice.discount:
        rows.append(_row("Discount", -invoice.discount))
    rows.append(_row("Net", invoice.net))
    for line in invoice.tax_summary():
        if line.rate:
            percent = f"{(line.rate * 100).normalize():f}"
            rows.append(_row(f"Tax {percent}% on {line.taxable}", line.tax))
    rows.append(_row("Total", invoice.total))
    return "\n".join(rows) + "\n"


def trial_balance(ledger):
    """Return (account, debit, credit) for every account in use."""
    rows = []
    for account in ledger.accounts():
        balance = ledger.balance(account)
        rows.append((account, max(balance, ZERO), max(-balance, ZERO)))
    return rows
