"""Seed files: what an account shall have, as TOML; read, applied and written."""
