"""Seed files: the desired data of an account, as TOML; read, applied and written."""
