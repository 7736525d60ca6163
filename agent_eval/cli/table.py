"""Which commands there are, and which module has each. Importing this imports none of them."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "regrade": ("agent_eval.cli.regrade", "new judgments over retained evidence; executes nothing"),
    "recheck": ("agent_eval.cli.recheck", "run today's checkers on the retained after-states; never the agent"),
    "verify": ("agent_eval.cli.verify", "compare a directory with its manifest and seal"),
    "status": ("agent_eval.cli.status", "counts of a run, sealed or not"),
    "show": ("agent_eval.cli.show", "a run or one trial in words"),
    "report": ("agent_eval.cli.report", "an HTML page, JUnit XML or Markdown from evidence"),
    "attest": ("agent_eval.cli.attest", "an unsigned in-toto statement about a sealed run"),
    "export": ("agent_eval.cli.export", "the trials in another tool's format"),
    "rerun": ("agent_eval.cli.rerun", "do again what an earlier run left, in a new directory linked to it"),
    "merge": ("agent_eval.cli.merge", "the shards of one plan as one directory"),
    "list": ("agent_eval.cli.list", "consumers, cases, runs or adapters"),
    "compare": ("agent_eval.cli.compare", "is a candidate better than an incumbent, case by case"),
    "judge": ("agent_eval.cli.judge", "validate a binary judge against labels"),
    "audit": ("agent_eval.cli.audit", "look for contamination, label errors and saturation in a benchmark"),
    "gate": ("agent_eval.cli.gate", "admit skill candidates and guardrail policies, and take them back"),
    "epoch": ("agent_eval.cli.epoch", "evaluator epochs: frozen criteria, queued challengers, checkpoints"),
}
"""Command name -> (module, one line for the help)."""

HIDDEN: dict[str, tuple[str, str]] = {
    "worker": ("agent_eval.cli.worker", "run one trial for a coordinator; request on stdin, answer on stdout"),
}
"""Commands that programs call: not in the help."""
