"""Admission and scheduling: which connection is served next, and how much CPU a request may use."""
