"""Fuzzers: bytes of an attacker's choice into every reader of the server, and what must hold whatever they are.

A target is a function from bytes to nothing that raises `BrokenPromiseError`, or whatever the server let through. The
same targets run under atheris, which is guided by coverage; under a plain mutating driver where atheris cannot be had;
and over the stored corpus in `make test`. Each input meets the same world, so each finding replays.
"""
