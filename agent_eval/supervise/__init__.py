"""Supervision: one process tree from its start to a known end.

The promises, their reasons and their limits are in ``README.md`` beside this file.
Callers use :class:`~agent_eval.supervise.slot.Slot` with a
:class:`~agent_eval.supervise.command.Command`; everything else serves those two.
"""
