"""Runs whose answer to a what-if is known: the same programs, simulated as they are and with one change.

Nothing here imports the product. A change is data; `changes.changed` says what it does to a program.
"""
