"""The operations of the Blob service, without a connection."""
