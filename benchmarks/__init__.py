"""How fast Lazulite is, beside the baseline server and others: `python -m benchmarks` (see README.md)."""
