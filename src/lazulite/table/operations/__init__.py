"""The operations, by what they change or read. `routes.py` says which request is which operation."""
