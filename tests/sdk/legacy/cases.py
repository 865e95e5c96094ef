"""Runs the cases of a program inside an old SDK's environment.

A case is a function whose name begins with `test_`. What is printed is one JSON object: the case's name, and null or
how it failed. Nothing but the standard library is imported, as these environments hold the SDK alone.
"""

import json
import os
import sys
import unittest
from uuid import uuid4

CONNECTION_STRING = os.environ["LAZULITE_TEST_CONNECTION_STRING"]
"""The account to test, by its path-style endpoint."""


def fields(connection_string=CONNECTION_STRING):
    """The parts of a connection string by name."""
    return dict(part.split("=", 1) for part in connection_string.split(";") if part)


def unique_name():
    return f"t{uuid4().hex}"


def run(program):
    """Run a module's cases in order; every one of them, whatever happened to those before it."""
    outcomes = {}
    for name, case in vars(program).items():
        if name.startswith("test_"):
            result = unittest.TestResult()
            unittest.FunctionTestCase(case).run(result)
            outcomes[name] = "\n".join(failure for _, failure in result.failures + result.errors) or None
    json.dump(outcomes, sys.stdout)
