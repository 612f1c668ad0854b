def with_tax(cents, percent):
    """The price with tax, in cents."""
    return cents + cents * percent / 100
