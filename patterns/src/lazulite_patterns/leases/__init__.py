"""Leases: one process at a time is the leader, and only its transactions are done."""

from lazulite_patterns.leases.lease import Lease
from lazulite_patterns.leases.protocol import Grant, LeaseLost, LeaseTaken

__all__ = ["Grant", "Lease", "LeaseLost", "LeaseTaken"]
