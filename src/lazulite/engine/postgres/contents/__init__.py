"""Contents as rows of a database."""
