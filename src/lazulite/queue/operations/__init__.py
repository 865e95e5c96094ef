"""The operations of the Queue service: each takes a call and returns a response."""
