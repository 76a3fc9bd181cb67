"""Scores of the product against planted truth: what it finds, how large, in which order, for which reason, where.

`analyse` is the one module here that runs the product; the truth comes from the workshop alone.
"""
