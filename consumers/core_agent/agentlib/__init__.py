"""The reference agent as a library: tools, a session that speaks ``core-agent/1``, and two policies."""
