"""Lazulite: self-hosted Azure Table storage, wire-compatible, durable and fast."""

__version__ = "0.2.0"
