"""A whole store, moved from one engine to another."""
