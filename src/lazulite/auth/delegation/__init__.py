"""User delegation keys, and the shared access signatures that they sign, for the services that have them."""
