"""Hostile clients beside a good one."""
