"""Access log, debug log, metrics and traces."""
