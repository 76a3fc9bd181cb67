"""The trace workshop: simulated runs, the traces a profiler would write of them, and the truth about them.

Nothing here imports the product: what checks a program must not share its code.
"""
