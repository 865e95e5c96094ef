"""Real PostgreSQL servers for tests: of our own, on loopback, gone with the process that started them."""
