"""Servers that break one promise each, which the campaigns must find."""
