"""What is written down: typed records, strict JSON in, canonical JSON out, digests.

This room is the ground of the house: it imports nothing else of this project
and it neither runs a process nor decides what a record means.
"""
