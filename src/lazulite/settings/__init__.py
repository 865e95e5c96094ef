"""Parse flags and environment variables into dataclasses."""
