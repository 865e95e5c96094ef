import pytest

from lazulite.protocol.addressing import Address, locate
from lazulite.protocol.message import Request


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/acct/Tables", Address("acct", False, "Tables", "http://h/acct/")),
        ("/acct", Address("acct", False, "", "http://h/acct/")),
        ("/acct/", Address("acct", False, "", "http://h/acct/")),
        ("/acct-secondary/t%27()", Address("acct", True, "t%27()", "http://h/acct-secondary/")),
        ("/acct-secondary/acct/Tables", Address("acct", True, "Tables", "http://h/acct-secondary/")),
        ("/acct-secondary/acct", Address("acct", True, "acct", "http://h/acct-secondary/")),
        ("/acct/acct/Tables", Address("acct", False, "acct/Tables", "http://h/acct/")),
        ("/", Address("", False, "", "http://h//")),
    ],
)
def test_path_style(path: str, address: Address) -> None:
    assert locate(Request("GET", path, headers={"host": "h"})) == address
