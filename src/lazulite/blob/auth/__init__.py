"""The credentials of the Blob service: Shared Key, SAS, user delegation SAS, bearer tokens, public access."""
