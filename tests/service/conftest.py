"""Fixtures of the Table service, which is the service that the tests of shared operations speak to."""

from tests.table.conftest import _client, _engine

__all__ = ["_client", "_engine"]
