"""Checks of the product from outside: simulated runs whose truth is known."""
