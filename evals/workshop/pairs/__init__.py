"""Pairs of runs with known changes, simulated: for `compare`. Nothing here imports the product."""
