"""Storage Analytics: the log lines and the metrics that a service writes about its own requests."""
