"""Pure arithmetic over judgments: reliability, intervals, exact tests, comparison, judge validation, integrity.

Owns: every number that a report, a gate or a comparison quotes. One module a family; nothing here reads a
file, prints, draws a random number or knows where a judgment came from.
Does not own: reading evidence directories (`agent_eval.evidence`), wording for people
(`agent_eval.report.statistics_text`) and decisions of a lineage (`agent_eval.gates`).
"""
