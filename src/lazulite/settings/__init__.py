"""Flags and environment variables, made into dataclasses."""
