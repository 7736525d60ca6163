"""Agents behind the contract ``core-agent/1``: scenarios as data, trials, judging, and a reference agent."""
