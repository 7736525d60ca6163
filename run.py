#!/usr/bin/env python3
"""Hands the command line to ``agent_eval.cli``; nothing else."""

import sys

if sys.version_info < (3, 11):
    sys.exit("error: Python 3.11 or newer is needed, this is " + sys.version.split()[0])

from agent_eval.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
