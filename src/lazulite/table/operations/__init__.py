"""The operations, one room each. `routes.py` says which request is which operation."""
