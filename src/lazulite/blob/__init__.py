"""The Blob service, which is not served yet: the models of leases and of conditional headers."""
