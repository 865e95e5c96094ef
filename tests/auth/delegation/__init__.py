"""User delegation keys."""
