"""The skill gate: a bounded patch on a fresh base, three separate measurements, a decision, a review, a promotion."""
