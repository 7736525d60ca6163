"""Turning retained evidence into judgments.

Owns the one assertion engine (scenarios and receipts share it), the kinds of
assertion, and the verdicts on owner reports, live and by regrade. Judging is pure:
it reads evidence and returns a record; it runs nothing, prints nothing and
writes nothing.
"""
