"""What the launcher `rooftrace.py` needs before any dependency is there; standard library only."""
