"""The command line: the only place that prints or exits.

One module per command; a module is imported only when its command is named.
"""
