"""Speed and memory of whole commands, against the floor measured in the same run."""
