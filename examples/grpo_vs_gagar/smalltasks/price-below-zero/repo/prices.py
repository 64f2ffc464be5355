def reduced(price, off):
    """The price after a reduction."""
    return price - off


def total(prices):
    """What all of them cost."""
    return sum(prices)
