"""Gates: which improvement is admitted, on what evidence, and how it is taken back.

Owns: the append-only ledger of a lineage, its content-addressed blobs, the byte-exact change of live files,
and three contracts on top of them: skill candidates (`skill`), guardrail policies (`guardrail`) and evaluator
epochs (`epoch`). Decisions are pure functions over integer tables; the state machines around them write history.
Does not own: the arithmetic (`agent_eval.measure`), running processes (`agent_eval.supervise`) and wording for
people (`agent_eval.report.gates_text`).
"""
