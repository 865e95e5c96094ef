"""How entities, tables and errors are spelled for a client, and what a client may send: negotiation, and the codecs."""
