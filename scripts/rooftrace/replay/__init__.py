"""Runs the recorded run again with something changed, to learn what the change is worth end to end."""
