"""Serialization of entities, tables and errors, parsing of request bodies, and content negotiation."""
