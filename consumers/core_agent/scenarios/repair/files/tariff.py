"""Tariff of the {{v.thing}} service."""

LIMIT = {{s.limit}}
LOW = {{s.low}}
HIGH = {{s.high}}


def {{v.function}}(units):
    """The price in cents of ``units`` {{v.thing}}s.

    The first LIMIT units cost LOW cents each, every unit beyond them costs HIGH cents.
    A negative number of units raises ValueError.
    """
    if units < 0:
        raise ValueError("units must not be negative")
    base = {{v.fault.base}}
    extra = {{v.fault.extra}}
    return base * LOW + extra * HIGH
