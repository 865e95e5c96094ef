"""Which addresses a source may have: public ones of a listed name, and those of a listed network."""

from ipaddress import ip_address, ip_network

import pytest

from lazulite.server.copy_sources.hosts import SourceHosts

PUBLIC = ("20.60.1.2", "8.8.8.8", "2603:1030::1")
NOT_PUBLIC = (
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.1.2.3", "169.254.169.254", "172.31.0.1"),
    *("192.168.0.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "255.255.255.255", "168.63.129.16", "100.100.100.200"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%1"),
    *("fec0::1", "ff02::1", "ff0e::1", "2001:db8::1"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_listed_name_may_have_any_public_address(address: str) -> None:
    hosts = SourceHosts(["store.example", "*.blob.example"])
    for name, expected in (
        ("store.example", True),
        ("STORE.example.", True),
        ("a.blob.example", True),
        ("a.b.blob.example", True),
        ("blob.example", False),
        ("evilblob.example", False),
        ("sub.store.example", False),
        ("store.example.evil", False),
    ):
        assert (hosts.allows(name, ip_address(address)), hosts.may_be_allowed(name)) == (expected, expected)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_neither_a_name_nor_everything_allows_an_address_that_is_not_public(address: str) -> None:
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"), ip_network("0.0.0.0/1"))
    assert not SourceHosts(["store.example", *everything]).allows("store.example", ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_everything_allows_public_addresses_of_any_name(address: str) -> None:
    assert SourceHosts([ip_network("0.0.0.0/0"), ip_network("::/0")]).allows("any.example", ip_address(address))


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("10.1.0.0/16", "10.1.2.3", True),
        ("10.1.0.0/16", "10.2.2.3", False),
        ("10.0.0.0/8", "10.2.2.3", True),
        ("8.0.0.0/6", "10.2.2.3", False),
        ("169.254.169.254", "169.254.169.254", True),
        ("fd00::/8", "fd12::1", True),
        ("::1", "::1", True),
        ("20.0.0.0/8", "20.60.1.2", True),
        ("20.0.0.0/8", "21.60.1.2", False),
    ],
)
def test_a_listed_network_allows_its_addresses_under_any_name(network: str, address: str, expected: bool) -> None:
    hosts = SourceHosts([ip_network(network)])
    assert hosts.allows("any.example", ip_address(address)) is expected
    assert hosts.may_be_allowed("any.example")


def test_without_hosts_nothing_is_allowed() -> None:
    hosts = SourceHosts([])
    assert not hosts.may_be_allowed("store.example")
    assert not hosts.allows("store.example", ip_address("8.8.8.8"))
