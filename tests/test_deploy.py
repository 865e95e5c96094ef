"""The files of `deploy/` agree with the command, with one another, and with what the documentation says of them.

That the load balancers' files work: torture/rolling/test_campaign.py and torture/rolling/test_balancers.py.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from argparse import Namespace
from importlib.metadata import requires
from ipaddress import ip_network
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lazulite import __version__
from lazulite.cli import main
from lazulite.cli.flag_types import DEFAULT_LOCATION
from lazulite.cli.parser import build_parser
from lazulite.server.limits import Limits
from lazulite.settings.addresses import DEFAULT_PORTS
from lazulite.settings.database import DATABASE_VARIABLES, database_settings_from
from tests.docs_support import fences
from tests.server_process import SECONDS_MAX, environment, running

from .torture.rolling.balancers import ADDRESSES, BLOB_ADDRESSES, QUEUE_ADDRESSES

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
(BUILD,) = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
HARDENING = "Limit|NoNew|Capability|Protect|Private|Restrict|Lock|System|UMask"
SPARE_SECONDS = 10
"""For closing the database and whatever else is done at the end."""
HEALTH_SECONDS = 5
"""How long `/health` may take to answer."""


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def service(name: str = "lazulite@.service") -> dict[str, str]:
    read = configparser.ConfigParser(strict=True, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep the case of names
    read.read_string(text(name))
    return dict(read["Service"])


def pip_commands() -> list[list[str]]:
    """The arguments of pip in each step of the image."""
    found = re.findall(r"^RUN pip (.*)$", text("Dockerfile"), re.MULTILINE)
    return [shlex.split(command) for command in found]


def copies() -> list[tuple[list[str], str]]:
    """What is copied into the image: from where, and to where."""
    found = re.findall(r"^COPY (.*) (\S+)$", text("Dockerfile"), re.MULTILINE)
    return [(sources.split(), target) for sources, target in found]


def normal(name: str) -> str:
    """The normal form of a package's name (PyPA's)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(lines: str) -> dict[str, str]:
    return {normal(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", lines, re.MULTILINE)}


def needed(requirement: str) -> set[str]:
    """The packages that a requirement needs, directly or not, without itself."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(requirement)]
    root = waiting[0].name
    while waiting:
        each = waiting.pop()
        for extra in ("", *each.extras):
            if (normal(each.name), extra) in seen:
                continue
            seen.add((normal(each.name), extra))
            for required in map(Requirement, requires(each.name) or ()):
                if required.marker is None or required.marker.evaluate({"extra": extra}):
                    waiting.append(required)
    return {name for name, _ in seen} - {root}


def of_the_unit() -> Namespace:
    command = service()["ExecStart"].replace("%i", "0003").replace("${CREDENTIALS_DIRECTORY}", "/run/credentials")
    program, *arguments = shlex.split(command)
    assert program.endswith("/.venv/bin/lazulite")
    return build_parser().parse_args(arguments)


def of_the_compose_file() -> Namespace:
    found = re.findall(r"^ +command: (\[.*\])$", text("compose.yaml"), re.MULTILINE)
    assert len(found) == 1
    return build_parser().parse_args(json.loads(found[0]))


def seconds(name: str, setting: str) -> int:
    """The time in seconds that a setting is given in a file."""
    [found] = set(re.findall(rf"\b{setting}[ :]+(\d+)s\b", text(name)))
    return int(found)


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
    manual = (DEPLOY.parent / "docs" / "operations" / "network.md").read_text(encoding="utf-8")
    for passed in (text("nginx.conf"), manual):
        assert set(re.findall(r"^ *proxy_next_upstream\b *(.*?);", passed, re.MULTILINE)) == {"off"}
    second_try = re.findall(r"^map \"\$.*?^}", text("nginx.conf"), re.MULTILINE | re.DOTALL)
    assert [re.findall(r'^ +(\S+|"[^"]*") +(\S+);$', each, re.MULTILINE) for each in second_try] == [
        [
            ("default", '""'),
            ('"~ 0$"', "yes"),
            ('"~^lazulite_queues GET .*/messages (?!true )"', '""'),
            ('"~^\\w+ (GET|HEAD) "', "yes"),
        ]
    ]
    assert text("haproxy.cfg").count("\n    http-request disable-l7-retry if !METH_GET\n") == 3


def test_a_unit_has_a_database_and_its_password() -> None:
    variables = dict(line.split("=", 1) for line in text("lazulite.env").splitlines() if not line.startswith("#"))
    assert set(variables) <= set(DATABASE_VARIABLES)
    args = of_the_unit()
    assert (args.table_port, args.queue_port, args.blob_port, args.services) == (
        10003,
        20003,
        30003,
        build_parser().parse_args(["serve"]).services,
    )
    assert str(args.engine_password_file) == "/run/credentials/password"
    assert service()["LoadCredential"].startswith("password:")
    args.engine_password_file = DEPLOY / "lazulite.env"
    with pytest.raises(ValueError, match="does not contain a password in one line"):
        database_settings_from(args, variables)
    assert int(service()["LimitNOFILE"]) >= Limits().connections + 5 * 1024


def test_all_speak_of_the_same_addresses() -> None:
    assert tuple(re.findall(r"^ +server lazulite-\d (\S+)$", text("haproxy.cfg"), re.MULTILINE)) == ADDRESSES
    assert tuple(re.findall(r"^ +server (\S+) ", text("nginx.conf"), re.MULTILINE)) == (
        ADDRESSES + QUEUE_ADDRESSES + BLOB_ADDRESSES
    )
    hosts = re.findall(r"^  lazulite-\d:\n.*\n.*\n +inside: {ipv4_address: (\S+)}", text("compose.yaml"), re.MULTILINE)
    args = of_the_compose_file()
    assert tuple(f"{host}:{args.table_port}" for host in hosts) == ADDRESSES
    queues = re.findall(r"^ +server queues-\d (\S+)$", text("haproxy.cfg"), re.MULTILINE)
    assert tuple(queues) == QUEUE_ADDRESSES == tuple(f"{host}:{args.queue_port}" for host in hosts)
    blobs = re.findall(r"^ +server blobs-\d (\S+)$", text("haproxy.cfg"), re.MULTILINE)
    assert tuple(blobs) == BLOB_ADDRESSES == tuple(f"{host}:{args.blob_port}" for host in hosts)
    listened = re.findall(r"^    (?:bind :|listen )(\d+)", text("haproxy.cfg") + text("nginx.conf"), re.MULTILINE)
    ports = [str(args.table_port), str(args.queue_port), str(args.blob_port)]
    assert listened == ports * 2
    assert f"\n    {args.queue_port} lazulite_queues;\n" in text("nginx.conf")
    published = re.findall(r'"(\d+):\d+"', text("compose.yaml"))
    assert published == ports
    assert text("Dockerfile").count(f"\nEXPOSE {' '.join(reversed(ports))}\n") == 1


def test_queues_and_blobs_are_balanced_as_tables() -> None:
    tables, queues, blobs = re.findall(
        r"^listen .*\n((?:.*\n)*?)(?=\n?# The same|\Z)", text("haproxy.cfg"), re.MULTILINE
    )
    rules = [re.findall(r"^    (?!#|bind|server)(.+)$", each, re.MULTILINE) for each in (tables, queues, blobs)]
    claims = "http-request disable-l7-retry if { path_end /messages } !{ url_param(peekonly) -i true }"
    assert rules[0] == [rule for rule in rules[1] if rule != claims] != rules[1]
    assert rules[0] == rules[2]
    assert len(rules[0]) > 8


def test_what_the_compose_file_and_the_image_name_is_there() -> None:
    compose = text("compose.yaml")
    assert "dockerfile: deploy/Dockerfile," in compose
    assert "./haproxy.cfg:" in compose
    assert set(re.findall(r"(?<!\{)LAZULITE_\w+", compose)) <= set(DATABASE_VARIABLES)
    sources = [source for line, _ in copies() for source in line]
    assert sources
    assert all((DEPLOY.parent / source).exists() for source in sources)
    assert sorted(f"!{source}" for source in sources) == sorted(text("Dockerfile.dockerignore").split()[1:])


def test_the_packages_of_the_image_are_the_pinned_ones_each_with_its_hashes() -> None:
    lines = text("requirements.txt")
    packages = pinned(lines)
    assert packages.items() <= pinned((ROOT / "constraints.txt").read_text()).items()
    assert packages.keys() == needed("lazulite[all]") | {Requirement(BUILD).name}
    for entry in re.split(r"\n(?=\w)", lines[lines.index("\nasyncpg==") + 1 :].strip()):
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry
    install, build = pip_commands()
    assert {"--require-hashes", "--only-binary", ":all:", "-r", "requirements.txt"} <= set(install)
    assert {"--no-index", "--no-deps", "--no-build-isolation", "."} <= set(build)


def test_the_base_image_is_an_argument_that_docs_pin_by_its_digest() -> None:
    image = re.search(r"^ARG BASE=(\S+)\nFROM \$\{BASE\}$", text("Dockerfile"), re.MULTILINE)
    assert image
    assert text("Dockerfile").count("FROM ") == 1
    assert f"${{LAZULITE_BASE:-{image[1]}}}" in text("compose.yaml")
    manual = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert f"docker buildx imagetools inspect {image[1]}" in manual
    assert f"--build-arg BASE={image[1]}@sha256:" in manual
    command = next(line for line in text("requirements.txt").splitlines() if "uv pip compile" in line).strip("# ")
    assert f"echo {Requirement(BUILD).name} | {command}" in manual


def test_the_image_preloads_the_allocator_that_it_installs() -> None:
    package = re.search(
        r"^RUN apt-get update && apt-get install -y --no-install-recommends (\S+)", text("Dockerfile"), re.M
    )
    library = re.search(r"^ENV LD_PRELOAD=(\S+)$", text("Dockerfile"), re.M)
    assert package
    assert library
    assert library[1] == re.sub(r"(\d+)$", r".so.\1", package[1])


def test_the_steps_of_the_image_install_the_command(tmp_path: Path) -> None:
    """In a virtual environment, as there may be no container engine."""
    pip = [str(tmp_path / "venv" / "bin" / "pip"), "--disable-pip-version-check"]
    venv.create(tmp_path / "venv", with_pip=True)
    asked = [*pip, "install", "--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:", BUILD]
    if subprocess.run(asked, capture_output=True, check=False, cwd=tmp_path).returncode:
        pytest.skip("no package index can be reached")
    for sources, _ in copies():
        for source in sources:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, tmp_path / Path(source).name)
    for arguments in pip_commands():
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    command = [str(tmp_path / "venv" / "bin" / "lazulite"), "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"lazulite {__version__}\n"


def test_the_compose_file_trusts_its_balancer_alone() -> None:
    balancer = re.search(
        r"^  haproxy:\n(?:    .*\n)*?      inside: \{ipv4_address: (\S+)\}$", text("compose.yaml"), re.M
    )
    assert balancer
    assert of_the_compose_file().trusted_proxy == [ip_network(balancer[1])]


@pytest.mark.parametrize("name", ["lazulite.service", "lazulite@.service"])
def test_units_keep_secrets_out_of_core_dumps_and_system_calls_to_those_of_services(name: str) -> None:
    unit = service(name)
    assert (unit["LimitCORE"], unit["SystemCallFilter"], unit["SystemCallArchitectures"]) == (
        "0",
        "@system-service",
        "native",
    )
    hardening = {key: value for key, value in service("lazulite@.service").items() if re.match(HARDENING, key)}
    assert hardening.items() <= unit.items()
    assert len(hardening) > 15
    assert "time-sync.target" in text(name)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("name", ["lazulite.service", "lazulite@0003.service"])
def test_systemd_has_nothing_to_say_about_the_units(name: str, tmp_path: Path) -> None:
    source = name.replace("0003", "")
    unit = text(source).replace("/opt/lazulite/.venv/bin/lazulite", "/bin/true")
    unit = unit.replace("/etc/lazulite/lazulite.env", str(DEPLOY / "lazulite.env"))
    (tmp_path / name).write_text(unit)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / name)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manual_shows_the_unit_as_it_is() -> None:
    assert [fence.text for fence in fences("docs/operations/install.md") if fence.language == "ini"] == [
        text("lazulite.service")
    ]


def test_no_secret_can_be_checked_in() -> None:
    assert "/deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text(encoding="utf-8").splitlines()


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", text("Dockerfile"), re.MULTILINE)


def entry_command() -> list[str]:
    """The words that a container runs without arguments."""
    [entrypoint], [command] = map(json.loads, instruction("ENTRYPOINT")), map(json.loads, instruction("CMD"))
    return [*entrypoint, *command]


def test_the_default_location_of_a_container_is_a_volume_that_belongs_to_its_user() -> None:
    directory = instruction("WORKDIR")[-1]
    location = f"{directory}/{DEFAULT_LOCATION}"
    assert instruction("VOLUME") == [location]
    [user] = instruction("USER")
    owner, group = user.split(":")
    assert f"install -d -o {owner} -g {group} -m 0700 {DEFAULT_LOCATION}" in instruction("RUN")
    lines = text("Dockerfile").splitlines()
    order = [f"WORKDIR {directory}", f"RUN install -d -o {owner} -g {group} -m 0700 data", f"USER {user}"]
    assert sorted(order, key=lines.index) == order
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(f"-v lazulite:{location} lazulite") == 2
    assert "-f deploy/Dockerfile -t lazulite ." in readme


def test_a_container_listens_outside() -> None:
    program, *arguments = entry_command()
    args = build_parser().parse_args(arguments)
    assert program == "lazulite"
    assert {args.table_host, args.queue_host, args.blob_host} == {"0.0.0.0"}
    assert args.location == DEFAULT_LOCATION
    assert not args.allow_development_key
    published = " ".join(str(port) for port in sorted(DEFAULT_PORTS.values()))
    assert instruction("EXPOSE") == [published]
    assert "-p 10000-10002:10000-10002" in (ROOT / "README.md").read_text(encoding="utf-8")


ANY_PORTS = ("--table-port", "0", "--queue-port", "0", "--blob-port", "0")


def test_a_container_without_an_account_ends_with_a_line_that_says_how_to_create_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", *entry_command(), *ANY_PORTS]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment(), timeout=SECONDS_MAX
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("lazulite: the development key is public, so it is not accepted on 0.0.0.0: ")
    assert "lazulite account add NAME" in ended.stderr
    assert "LAZULITE_ACCOUNTS=NAME:KEY" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / DEFAULT_LOCATION).exists()


@pytest.mark.parametrize("accounts", ["", "orders:a2V5"], ids=["account add", "environment"])
def test_a_container_with_an_account_serves_in_its_directory(
    accounts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if not accounts:
        assert main(["account", "add", "orders"]) == 0
    _, serve, *flags = entry_command()
    assert serve == "serve"
    with running(*flags, "--silent", LAZULITE_ACCOUNTS=accounts) as server:
        assert "listens on http://0.0.0.0:" in server.lines[0]
        assert server.lines[1].startswith("account orders: ")
        assert server.stop()[0] == 0
    assert (tmp_path / DEFAULT_LOCATION / "store").is_dir()
