"""Design patterns for Azure Table storage that hold under crashes and lost answers."""

__version__ = "0.1.0"
