"""The planted cases that the product is scored on; a list, from which traces are simulated when they are needed."""
