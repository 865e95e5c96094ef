"""The row store: one contract, one package an engine."""
