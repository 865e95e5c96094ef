"""Rules of faults, and what they do to requests."""
