"""The asynchronous twins of `lazulite_patterns`."""
