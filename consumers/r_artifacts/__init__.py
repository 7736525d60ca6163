"""Checks a finished DESeq2 analysis by pairing, integrity and independent arithmetic."""
