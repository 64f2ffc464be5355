"""Decimal helpers: every amount in the package goes through here."""

from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation

CENT = Decimal("0.01")
ZERO = Decimal("0.00")


def round_cents(amount):
    """Round `amount` to whole cents, halves away from zero."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def money(value):
    """Return `value` (a string, an int or a Decimal) as an amount in whole cents.

    Floats are refused, since most of them are not the amount they look like.
    """
    if isinstance(value, float):
        raise TypeError("amounts must not be floats; pass a string or a Decimal")
    try:
        return round_cents(Decimal(value))
    except InvalidOperation:
        raise ValueError(f"not an amount: {value!r}") from None


def split(amount, weights):
    """Split `amount` in proportion to `weights`, to the cent.

    The shares come back in the order of the weights and always add up to
    `amount`. Each share is cut to whole cents; the cents left over go to the
    largest remainders, and to the earlier share where remainders are equal.
    """
    weights = list(weights)
    total = sum(weights)
    if total <= 0:
        raise ValueError("weights must add up to more than zero")
    exact = [amount * weight / total for weight in weights]
    shares = [share.quantize(CENT, rounding=ROUND_DOWN) for share in exact]
    left_over = int((amount - sum(shares)) / CENT)
    by_remainder = sorted(range(len(shares)), key=lambda i: shares[i] - exact[i])
    for index in by_remainder[:left_over]:
        shares[index] += CENT
    return shares
