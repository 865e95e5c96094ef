"""Authentication and authorization: accounts, Shared Key, SAS, bearer tokens, grants."""
