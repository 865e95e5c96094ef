"""Queries: options, pages, continuation, filters, and predicates on rows."""
