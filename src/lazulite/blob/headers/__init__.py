"""The headers of requests and responses that several operations share."""
