"""The row store: one contract, and one package per engine."""
