"""Services that wrap another service: health checks and forwarded headers."""
