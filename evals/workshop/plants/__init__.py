"""Runs with bottlenecks planted in them, and what each of them costs.

A base (`networks`) is a sound workload; a *kind* (`kinds`) is something that may be wrong with it. A case is a base
with some kinds planted. What a planted kind costs is the difference of two simulations, with and without it, in which
every other number is the same draw. Nothing here imports the product.
"""
