"""The files of `deploy/` agree with the command, with one another, and with what the documentation says of them.

That the load balancers' files work: torture/test_rolling.py and torture/test_balancers.py.
"""

import configparser
import json
import re
import shlex
from argparse import Namespace
from pathlib import Path

import pytest

from lazulite.cli.parser import build_parser
from lazulite.database_settings import DATABASE_VARIABLES, database_settings_from
from lazulite.server.limits import Limits
from tests.torture.balancers import ADDRESSES

DEPLOY = Path(__file__).parents[1] / "deploy"
SPARE_SECONDS = 10
"""For closing the database and whatever else is done at the end."""
HEALTH_SECONDS = 5
"""How long `/health` may take to answer."""


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def service() -> dict[str, str]:
    read = configparser.ConfigParser(strict=True, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep the case of names
    read.read_string(text("lazulite@.service"))
    return dict(read["Service"])


def of_the_unit() -> Namespace:
    command = service()["ExecStart"].replace("%i", "10003").replace("${CREDENTIALS_DIRECTORY}", "/run/credentials")
    program, *arguments = shlex.split(command)
    assert program.endswith("/.venv/bin/lazulite")
    return build_parser().parse_args(arguments)


def of_the_compose_file() -> Namespace:
    found = re.findall(r"^ +command: (\[.*\])$", text("compose.yaml"), re.MULTILINE)
    assert len(found) == 1
    return build_parser().parse_args(json.loads(found[0]))


def seconds(name: str, setting: str) -> int:
    """The time in seconds that a setting is given in a file."""
    found = re.findall(rf"\b{setting}[ :]+(\d+)s\b", text(name))
    assert len(found) == 1, (name, setting, found)
    return int(found[0])


def test_a_stop_is_given_its_time() -> None:
    stops = [
        (of_the_unit(), int(service()["TimeoutStopSec"])),
        (of_the_compose_file(), seconds("compose.yaml", "stop_grace_period")),
    ]
    for args, patience in stops:
        assert patience >= args.drain_delay_seconds + Limits().drain_seconds + SPARE_SECONDS


@pytest.mark.parametrize("args", [of_the_unit(), of_the_compose_file()], ids=["systemd", "compose"])
def test_a_load_balancer_notices_a_stop_in_time_and_is_the_first_to_end_a_connection(args: Namespace) -> None:
    check = re.search(r"inter (\d+)s fastinter (\d+)ms fall (\d+)", text("haproxy.cfg"))
    assert check
    inter, fastinter, fall = map(int, check.groups())
    assert inter + (fall - 1) * fastinter / 1000 < args.drain_delay_seconds / 2
    assert seconds("nginx.conf", "keepalive_timeout") < args.drain_delay_seconds
    for timeout in ("http-keep-alive", "client", "server"):
        assert seconds("haproxy.cfg", f"timeout {timeout}") < args.keep_alive_idle_seconds
    assert seconds("haproxy.cfg", "timeout check") > HEALTH_SECONDS
    assert seconds("haproxy.cfg", "timeout server") > Limits().request_seconds


def test_no_balancer_sends_a_write_again_that_a_process_may_have_taken() -> None:
    manual = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    for passed in (text("nginx.conf"), manual):
        assert re.findall(r"^ *proxy_next_upstream\b *(.*?);", passed, re.MULTILINE) == ["off"]
    second_try = re.findall(r"^map .*?^}", text("nginx.conf"), re.MULTILINE | re.DOTALL)
    assert [re.findall(r'^ +(\S+|"[^"]*") +(\S+);$', each, re.MULTILINE) for each in second_try] == [
        [("default", '""'), ('"~^(GET|HEAD) "', "yes"), ('"~ 0$"', "yes")]
    ]
    assert "\n    http-request disable-l7-retry if !METH_GET\n" in text("haproxy.cfg")


def test_a_unit_has_a_database_and_its_password() -> None:
    variables = dict(line.split("=", 1) for line in text("lazulite.env").splitlines() if not line.startswith("#"))
    assert set(variables) <= set(DATABASE_VARIABLES)
    args = of_the_unit()
    assert args.table_port == 10003
    assert str(args.engine_password_file) == "/run/credentials/password"
    assert service()["LoadCredential"].startswith("password:")
    args.engine_password_file = DEPLOY / "lazulite.env"
    with pytest.raises(ValueError, match="does not hold a password, in one line"):
        database_settings_from(args, variables)
    assert int(service()["LimitNOFILE"]) >= Limits().connections + 5 * 1024


def test_all_speak_of_the_same_addresses() -> None:
    assert tuple(re.findall(r"^ +server lazulite-\d (\S+)$", text("haproxy.cfg"), re.MULTILINE)) == ADDRESSES
    assert tuple(re.findall(r"^ +server (\S+) ", text("nginx.conf"), re.MULTILINE)) == ADDRESSES
    hosts = re.findall(r"ipv4_address: (\S+)}", text("compose.yaml"))
    port = of_the_compose_file().table_port
    assert tuple(f"{host}:{port}" for host in hosts) == ADDRESSES


def test_what_the_compose_file_and_the_image_name_is_there() -> None:
    compose = text("compose.yaml")
    assert "dockerfile: deploy/Dockerfile}" in compose
    assert "./haproxy.cfg:" in compose
    assert set(re.findall(r"LAZULITE_\w+", compose)) <= set(DATABASE_VARIABLES)
    copied = re.findall(r"^COPY (.*) \S+$", text("Dockerfile"), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    assert sources
    assert all((DEPLOY.parent / source).exists() for source in sources)
    assert sorted(f"!{source}" for source in sources) == sorted(text("Dockerfile.dockerignore").split()[1:])


def test_no_secret_can_be_checked_in() -> None:
    assert "/deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text(encoding="utf-8").splitlines()
