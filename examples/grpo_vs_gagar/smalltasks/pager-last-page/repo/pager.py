def pages(total, size):
    """How many pages `total` items need."""
    return total // size


def page(items, number, size):
    """The items of one page; pages count from 1."""
    return items[(number - 1) * size : number * size]
