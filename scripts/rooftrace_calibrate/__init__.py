"""Measures what a device can do, with the torch of the interpreter that runs it.

Standard library and torch only: it runs where the user trains, which need not have the dependencies of the analysis.
Of the package it takes what the standard library suffices for: errors, units and the pack's place.
"""
