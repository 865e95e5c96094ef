"""The hosts from which a copy's source may be fetched, as `--copy-source-host` names them.

Invariant: an address that is not public is allowed only by a network that lies in the same range of `_NOT_PUBLIC`. So a
name never allows such an address, whatever it resolves to, and neither does 0.0.0.0/0.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

SourceHost: TypeAlias = str | IPv4Network | IPv6Network
"""A host name in lower case; `*.` before a domain for all names in it; or a network."""
IpAddress: TypeAlias = IPv4Address | IPv6Address

_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            # RFC 6890 and its registries.
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            # Public, but inside Azure it gives the machine's own metadata.
            "168.63.129.16/32",
            # All of IPv6 but 2000::/3, and there what contains an IPv4 address or is for documentation.
            *("::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
        ),
    )
)


class SourceHosts:
    """The hosts that the operator has allowed.

    Args:
        hosts: names and networks.
    """

    def __init__(self, hosts: Iterable[SourceHost]) -> None:
        found = tuple(hosts)
        self._names = [host for host in found if isinstance(host, str)]
        self._networks = [host for host in found if not isinstance(host, str)]

    def may_be_allowed(self, host: str) -> bool:
        """Return whether some address of a host can be allowed, so that its name may be resolved."""
        return bool(self._networks) or self._has_name(host)

    def allows(self, host: str, address: IpAddress) -> bool:
        """Return whether a host may be connected to at an address that its name resolves to."""
        plain = getattr(address, "ipv4_mapped", None) or address
        networks = [network for network in self._networks if plain in network]
        ranges = [each for each in _NOT_PUBLIC if plain in each]
        if not ranges:
            return bool(networks) or self._has_name(host)
        return any(_within(network, each) for network in networks for each in ranges)

    def _has_name(self, host: str) -> bool:
        name = host.lower().removesuffix(".")
        return any(name.endswith(each[1:]) if each.startswith("*.") else name == each for each in self._names)


def _within(network: IPv4Network | IPv6Network, range_: IPv4Network | IPv6Network) -> bool:
    return network.prefixlen >= range_.prefixlen and network.network_address in range_
