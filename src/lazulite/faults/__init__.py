"""Faults on request: rules that say which requests suffer from what, and the decision about each request."""
