"""Evidence directories: new ones only, write-once files, a journal, a manifest and its seal.

Owns format ``agent-eval/evidence/1`` on disk, writing and reading. It does not run
anything and holds no opinion on what the evidence shows.
"""
