"""Agents in the loop: a harness works on a task in a folder of its own, code checks what it left, many times over.

Nothing here knows a harness: it is a command with ``{prompt}`` in it. The product is used as the agent uses it, by its
commands; the truth comes from the workshop.
"""
