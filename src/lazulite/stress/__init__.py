"""Stress test of an endpoint: load from several processes, what it measured, and whether the endpoint passes.

Invariants:
- it knows an endpoint by its URL and a token, and nothing about a server;
- keys and tokens go to processes by pipes, and never into results;
- the latency of a request with an intended start counts from there.
"""
