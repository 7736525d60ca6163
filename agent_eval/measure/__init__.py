"""Pure arithmetic over judgments: reliability, intervals, exact tests, comparison, judge validation, integrity.

Owns: every number that a report, a gate or a comparison quotes. One module a family; nothing here opens a file,
prints or draws a random number, and only `outcomes` knows that judgments are kept in evidence directories.
Does not own: opening and checking those (`agent_eval.evidence`), wording for people
(`agent_eval.report.statistics_text`) and decisions of a lineage (`agent_eval.gates`). README.md beside this says what
each number means, with examples.
"""
