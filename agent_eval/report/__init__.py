"""Everything that formats for people: terminal, HTML page, JUnit XML, Markdown, attestation, export.

Every function here is a pure function of an evidence directory (or of records taken from
one) and of how wide or colourful the reader's screen is. Nothing here prints, exits, judges,
runs a process or writes into evidence; ``cli`` prints what this room returns.
"""
