"""How entities and errors are spelled for a client: negotiation, JSON in, JSON out. Atom will be a second codec."""
