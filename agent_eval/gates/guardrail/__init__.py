"""The guardrail gate: three arms on one frozen suite, an absolute benign floor, and an incumbent that always comes back."""
