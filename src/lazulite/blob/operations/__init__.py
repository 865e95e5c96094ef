"""The operations of the Blob service, one module for each group of the reference."""
