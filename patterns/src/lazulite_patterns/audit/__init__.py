"""The auditor: reads tables from end to end, and compares what patterns keep in agreement."""

from lazulite_patterns.audit.checkpoints import Checkpoint, FileCheckpoint
from lazulite_patterns.audit.finding import Check, Finding, correction, deletion

__all__ = ["Check", "Checkpoint", "FileCheckpoint", "Finding", "correction", "deletion"]
