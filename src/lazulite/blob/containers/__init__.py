"""The operations on containers and on the account."""
