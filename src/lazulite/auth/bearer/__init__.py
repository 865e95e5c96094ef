"""Bearer tokens (JSON Web Tokens) and the keys that sign them."""
