"""The auditor: reads tables from end to end, and compares what patterns keep in agreement."""

from lazulite_patterns.auditing.finding import Check, Finding, correction, deletion
from lazulite_patterns.checkpoints import Checkpoint, FileCheckpoint

__all__ = ["Check", "Checkpoint", "FileCheckpoint", "Finding", "correction", "deletion"]
