from argparse import Namespace

import pytest

from lazulite.cli.parser import build_parser
from lazulite.settings.addresses import SERVICES, ServiceAddress, addresses_from, by_address

NAMES = ("one", "two", "three")
"""Services of these tests: the rules hold for any number."""


def flags(cert: str | None = None, **given: object) -> Namespace:
    defaults: dict[str, object] = {}
    for number, name in enumerate(NAMES, 1):
        defaults |= {f"{name}_host": "127.0.0.1", f"{name}_port": number, f"{name}_https_port": None}
    return Namespace(cert=cert, **defaults | given)


def servers(*given: ServiceAddress) -> tuple[tuple[str, ...], ...]:
    return by_address(dict(zip(NAMES, given, strict=True)))


def test_each_service_has_its_own_address() -> None:
    found = addresses_from(flags(two_host="::1", two_port=0, three_https_port=4), NAMES)
    assert found == {
        "one": ServiceAddress("127.0.0.1", 1),
        "two": ServiceAddress("::1", 0),
        "three": ServiceAddress("127.0.0.1", 3, 4),
    }
    assert list(addresses_from(flags(), ("three", "two"))) == ["three", "two"]


def test_with_a_certificate_alone_each_port_is_for_https() -> None:
    found = addresses_from(flags("c", one_port=0, three_https_port=4), NAMES)
    assert [each[1:] for each in found.values()] == [(None, 0), (None, 2), (3, 4)]


@pytest.mark.parametrize(
    ("cert", "https_port", "ports"), [(None, None, (1, None)), ("c", None, (None, 1)), ("c", 9, (1, 9))]
)
def test_a_shared_port_has_one_https_port(cert: str | None, https_port: int | None, ports: tuple[int, int]) -> None:
    found = addresses_from(flags(cert, three_port=1, one_https_port=https_port), NAMES)
    assert found["one"] == found["three"] == ServiceAddress("127.0.0.1", *ports)


@pytest.mark.parametrize("https_port", [None, 8])
def test_two_https_ports_of_a_shared_port_are_rejected(https_port: int | None) -> None:
    with pytest.raises(ValueError, match="leave --three-https-port out"):
        addresses_from(flags("c", three_port=2, two_https_port=https_port, three_https_port=9), NAMES)


def test_services_of_one_address_share_a_server() -> None:
    any_port, first, second = ServiceAddress(), ServiceAddress(port=1), ServiceAddress(port=2)
    assert servers(any_port, any_port, any_port) == (("one",), ("two",), ("three",))
    assert servers(first, first, first) == (NAMES,)
    assert servers(first, second, first) == (("one", "three"), ("two",))
    assert servers(first, second, second) == (("one",), ("two", "three"))
    assert servers(first, second, second._replace(host="::1")) == (("one",), ("two",), ("three",))
    over_tls = ServiceAddress(port=None, https_port=1)
    assert servers(over_tls, first, over_tls) == (("one", "three"), ("two",))


def test_the_flags_of_every_service_are_read() -> None:
    assert tuple(addresses_from(build_parser().parse_args(["serve"]), SERVICES)) == SERVICES
