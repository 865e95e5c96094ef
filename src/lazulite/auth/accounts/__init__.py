"""Accounts and their keys, and where they are stored."""
