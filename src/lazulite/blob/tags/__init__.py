"""The operations on index tags."""
