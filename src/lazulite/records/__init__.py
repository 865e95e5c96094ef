"""Typed rows on the engine: the numbers of spaces, and a cache of rows."""
