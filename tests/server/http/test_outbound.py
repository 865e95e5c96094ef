"""What a client is called."""

import asyncio

import pytest

from lazulite.server.http.outbound import client_address


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("192.0.2.1", 80), "192.0.2.1"),
        (("::1", 80, 0, 0), "::1"),
        (("::ffff:192.0.2.1", 80, 0, 0), "192.0.2.1"),
        (("fe80::1%eth0", 80, 0, 2), "fe80::1"),
        (None, ""),
        ("", ""),
    ],
)
def test_addresses_are_spelled_as_sas_spells_them(peer: object, address: str) -> None:
    assert client_address(asyncio.BaseTransport({"peername": peer})) == address
