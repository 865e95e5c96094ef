"""The data of an account, copied to another one by requests: what `lazulite pull` and `lazulite push` do."""
