"""The row store: one contract, one module an engine."""
