"""How fast Lazulite is, against the floor of its own technique: `python -m benchmarks` (see README.md)."""
