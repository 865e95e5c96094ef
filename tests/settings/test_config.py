import base64
from ipaddress import ip_network
from pathlib import Path

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory
from lazulite.auth.bearer.rules import BearerRules
from lazulite.cli.parser import build_parser
from lazulite.cli.serve_flags import ROLE_FLAGS
from lazulite.partitions.targets import STUDY_2010
from lazulite.server.limits import Limits
from lazulite.settings.addresses import DEFAULT_PORTS, ServiceAddress
from lazulite.settings.bearer import ROLES, BearerSettings
from lazulite.settings.config import (
    ConfigError,
    Settings,
    account_file,
    accounts_from,
    check_development_key,
    is_loopback,
    settings_from,
)
from lazulite.settings.partitions import PartitionSettings

DEFAULT_ADDRESSES = {name: ServiceAddress("127.0.0.1", port) for name, port in DEFAULT_PORTS.items()}
PUBLIC_KEY = base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()


def settings(*arguments: str, **environ: str) -> Settings:
    return settings_from(build_parser().parse_args(["serve", *arguments]), environ)


def test_the_defaults() -> None:
    assert settings() == Settings(location=Path("data"), addresses=DEFAULT_ADDRESSES)


def test_every_flag_reaches_its_setting() -> None:
    arguments = ["-l", "/x", "--tableHost", "::1", "--tablePort", "0", "-s", "-d", "log", "--allow-development-key"]
    limits = ["--connections", "5", "--keep-alive-seconds", "7.5", "--page-seconds", "1"]
    assert settings(*arguments, *limits) == Settings(
        location=Path("/x"),
        addresses={**DEFAULT_ADDRESSES, "table": ServiceAddress("::1", 0)},
        allow_development_key=True,
        log_requests=False,
        debug_file=Path("log"),
        page_seconds=1.0,
        limits=Limits(connections=5, keep_alive_idle_seconds=7.5),
    )


def test_the_address_of_queues() -> None:
    arguments = ["--services", "queue,table", "--queue-host", "::1", "--queue-port", "1", "--host-suffix", "a.example"]
    given = settings(*arguments)
    assert given.services == ("table", "queue")
    assert given.address("queue") == ServiceAddress("::1", 1, None)
    assert given.host_suffixes_of("queue") == ("queue.localhost", "a.example")
    assert given.host_suffixes_of("table") == given.host_suffixes == ("table.localhost", "a.example")
    with_tls = settings("--cert", "c", "--queue-port", "2")
    assert with_tls.address("queue") == ServiceAddress("127.0.0.1", None, 2)
    both = settings("--cert", "c", "--queue-port", "2", "--queue-https-port", "3")
    assert both.address("queue") == ServiceAddress("127.0.0.1", 2, 3)


@pytest.mark.parametrize(
    ("arguments", "servers"),
    [
        ([], (("table",), ("queue",), ("blob",))),
        (["--services", "queue"], (("queue",),)),
        (["--services", "table", "--queue-port", "10002"], (("table",),)),
        (["--table-port", "0", "--queue-port", "0", "--blob-port", "0"], (("table",), ("queue",), ("blob",))),
        (["--queue-port", "10002", "--queue-host", "::1"], (("table",), ("queue",), ("blob",))),
        (["--queue-port", "10002"], (("table", "queue"), ("blob",))),
        (["--queue-port", "10002", "--blob-port", "10002"], (("table", "queue", "blob"),)),
        (["--queue-port", "10000"], (("table",), ("queue", "blob"))),
        (["--queue-port", "10002", "--cert", "c"], (("table", "queue"), ("blob",))),
        (["--queue-port", "10002", "--cert", "c", "--https-port", "1"], (("table", "queue"), ("blob",))),
        (["--workers", "2"], (("table",), ("queue",), ("blob",))),
    ],
)
def test_services_of_one_address_share_a_server(arguments: list[str], servers: tuple[tuple[str, ...], ...]) -> None:
    assert settings(*arguments).servers == servers


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--path-style-only"], "--path-style-only"),
        (["--host-suffix", "example.org"], r"table\.example\.org"),
        (["--cert", "c", "--https-port", "1", "--queue-https-port", "2"], "--queue-https-port"),
    ],
)
def test_services_of_one_address_can_be_distinguished(arguments: list[str], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        settings("--queue-port", "10002", *arguments)


def test_websites_have_an_address_if_they_have_a_port() -> None:
    assert settings().services == ("table", "queue", "blob")
    alone = settings("--web-port", "0", "--web-host", "::1")
    assert alone.services == ("table", "queue", "blob", "web")
    assert alone.address("web") == ServiceAddress("::1", 0)
    assert alone.host_suffixes_of("web") == ("web.localhost",)
    shared = settings("--web-port", "10000")
    assert shared.servers == (("table",), ("queue",), ("blob", "web"))
    assert settings("--web-port", "2", "--cert", "c").address("web") == ServiceAddress("127.0.0.1", None, 2)


def test_websites_without_blobs_are_rejected() -> None:
    with pytest.raises(ConfigError, match="--web-port needs the service blob"):
        settings("--web-port", "0", "--services", "table")


def test_the_development_key_is_for_loopback_addresses_of_each_service() -> None:
    directory = AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT})
    check_development_key(settings("--queue-host", "0.0.0.0", "--services", "table"), directory)
    with pytest.raises(ConfigError, match=r"not accepted on 0\.0\.0\.0"):
        check_development_key(settings("--queue-host", "0.0.0.0", "--services", "table,queue"), directory)


def test_the_explorer_is_off_and_beyond_loopback_by_https_alone(tmp_path: Path) -> None:
    assert (settings().ui_port, settings().ui_host, settings().ui_read_only) == (None, "127.0.0.1", False)
    with pytest.raises(ConfigError, match="by HTTPS alone: pass --cert"):
        settings("--ui-port", "0", "--ui-host", "0.0.0.0")
    given = settings("--ui-port", "0", "--ui-host", "0.0.0.0", "--cert", str(tmp_path / "cert.pem"), "--ui-read-only")
    assert (given.ui_port, given.ui_host, given.ui_read_only) == (0, "0.0.0.0", True)


def test_metrics_are_off_unless_they_have_a_port() -> None:
    assert (settings().metrics_port, settings().metrics_host) == (None, "127.0.0.1")
    given = settings("--metrics-port", "0", "--metrics-host", "::1")
    assert (given.metrics_port, given.metrics_host) == (0, "::1")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, ()),
        ({"OTEL_SERVICE_NAME": "x"}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, ()),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": " console, otlp,console,"}, ("console", "otlp")),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ()),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, ("zipkin",)),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("otlp by grpc",)),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            ("otlp",),
        ),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"}, ()),
    ],
)
def test_exporters_of_spans_by_variables(environ: dict[str, str], expected: tuple[str, ...]) -> None:
    assert settings(**environ).trace_exporters == expected


def test_a_certificate_makes_https_of_the_port_unless_it_has_its_own() -> None:
    alone = settings("--cert", "c", "--table-port", "1")
    assert (alone.address("table"), alone.cert, alone.key) == (ServiceAddress("127.0.0.1", None, 1), Path("c"), None)
    both = settings("--cert", "c", "--key", "k", "--table-port", "1", "--https-port", "2")
    assert (both.address("table"), both.key) == (ServiceAddress("127.0.0.1", 1, 2), Path("k"))


def test_hosts_and_proxies() -> None:
    assert settings("--host-suffix", "a.b").host_suffixes == ("table.localhost", "a.b")
    three = settings(*(f"--host-suffix={name}.a.b" for name in ("table", "queue", "blob")), "--queue-port", "10002")
    assert three.host_suffixes_of("queue") == ("queue.localhost", "queue.a.b")
    assert three.host_suffixes_of("table") == ("table.localhost", "table.a.b")
    paths_only = settings("--host-suffix", "a.b", "--path-style-only", "--allowed-host", "C.d.", "--allowed-host", "e")
    assert (paths_only.host_suffixes, paths_only.allowed_suffixes) == ((), ("a.b",))
    assert paths_only.allowed_hosts == ("c.d", "e")
    proxies = settings("--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "::1").trusted_proxies
    assert proxies == (ip_network("10.0.0.0/8"), ip_network("::1"))
    flag = "--copy-source-host"
    sources = settings(flag, "Store.example.", flag, "*.B.example", flag, "10.0.0.0/8", flag, "[::1]").copy_source_hosts
    assert sources == ("store.example", "*.b.example", ip_network("10.0.0.0/8"), ip_network("::1"))
    assert settings().copy_source_hosts == ()


def test_in_memory_there_is_no_location() -> None:
    assert settings("--in-memory", "-l", "/x").location is None


def test_accounts_come_from_the_environment() -> None:
    assert accounts_from({}) == {}
    assert list(accounts_from({"AZURITE_ACCOUNTS": "a:MQ=="})) == ["a"]
    assert list(accounts_from({"LAZULITE_ACCOUNTS": " ", "AZURITE_ACCOUNTS": "a:MQ=="})) == ["a"]
    both = accounts_from({"LAZULITE_ACCOUNTS": "b:MQ==:Mg==;c:Mw==;", "AZURITE_ACCOUNTS": "a:MQ=="})
    assert {name: account.keys for name, account in both.items()} == {"b": (b"1", b"2"), "c": (b"3",)}


@pytest.mark.parametrize("text", ["secret", "name:secret!", "a:MQ==;a:MQ==", ";;"])
def test_bad_accounts_are_rejected_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="LAZULITE_ACCOUNTS") as caught:
        settings(LAZULITE_ACCOUNTS=text)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_are_in_no_repr() -> None:
    shown = repr(settings(LAZULITE_ACCOUNTS="a:c2VjcmV0"))
    assert "secret" not in shown
    assert "c2VjcmV0" not in shown


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost.example", False),
        ("tables", False),
        ("2130706433", False),
    ],
)
def test_loopback_addresses(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def directory(*, environ: str = "", stored: str = "", location: Path) -> AccountDirectory:
    if stored:
        keys = f'["{stored}", "{stored}"]'
        text = f'{{"version": 1, "accounts": [{{"name": "innocent", "keys": {keys}}}]}}'
        account_file(location).path.write_text(text)
    return AccountDirectory(accounts_from({"AZURITE_ACCOUNTS": environ}), account_file(location))


@pytest.mark.parametrize(
    ("environ", "stored"),
    [
        ("", ""),
        (f"innocent:{PUBLIC_KEY}", ""),
        (f"innocent:MQ==:{PUBLIC_KEY}", ""),
        (f"innocent:MQ==;other:{PUBLIC_KEY}", ""),
        ("", PUBLIC_KEY),
        ("other:MQ==", PUBLIC_KEY),
    ],
)
def test_the_development_key_stays_on_this_machine(environ: str, stored: str, tmp_path: Path) -> None:
    accounts = directory(environ=environ, stored=stored, location=tmp_path)
    for host in ("0.0.0.0", "::", "tables"):
        with pytest.raises(ConfigError, match="--allow-development-key"):
            check_development_key(settings("--table-host", host), accounts)
        check_development_key(settings("--table-host", host, "--allow-development-key"), accounts)
    check_development_key(settings(), accounts)


def test_own_keys_are_accepted_on_any_address(tmp_path: Path) -> None:
    everywhere = settings("--table-host", "0.0.0.0")
    check_development_key(everywhere, AccountDirectory({"devstoreaccount1": Account("devstoreaccount1", (b"x",))}))
    check_development_key(everywhere, directory(stored="MQ==", location=tmp_path))


# Bearer tokens.


def test_without_an_issuer_there_are_no_bearer_tokens() -> None:
    assert settings().bearer is None


def test_an_issuer_is_enough() -> None:
    assert settings("--oidc-issuer", "https://issuer.example/a").bearer == BearerSettings(
        BearerRules(
            "https://issuer.example/a",
            ("https://storage.azure.com",),
            ("roles",),
        )
    )


def test_each_role_has_its_flag() -> None:
    assert {role.flag: role.title for role in ROLES} == ROLE_FLAGS


def test_every_flag_of_bearer_tokens() -> None:
    role_values = {flag: frozenset(values) for flag, values in (("reader", "r"), ("contributor", "cd"))}
    role_values["queue-sender"] = frozenset("s")
    assert settings(
        *("--oidc-issuer", "https://issuer.example", "--oidc-jwks", "keys.json", "--allow-bearer-over-http"),
        *("--oidc-audience", "a", "--oidc-audience", "b", "--oidc-role-claim", "groups", "--oidc-role-claim", "oid"),
        *("--oidc-reader", "r", "--oidc-contributor", "c", "--oidc-contributor", "d", "--oidc-queue-sender", "s"),
    ).bearer == BearerSettings(
        BearerRules("https://issuer.example", ("a", "b"), ("groups", "oid"), role_values),
        Path("keys.json"),
        allow_http=True,
    )


@pytest.mark.parametrize(
    "flags",
    [
        ["--allow-bearer-over-http"],
        *[[f"--oidc-{name}", "x"] for name in ("jwks", "audience", "role-claim", *ROLE_FLAGS)],
        *[
            ["--oidc-issuer", url]
            for url in ("", "issuer", "ftp://x/", "https://x/?y", "https://x/a=b", 'https://x/"', "https://x,y/")
        ],
        ["--oidc-issuer", "https://x", "--oidc-audience", ""],
        ["--oidc-issuer", "https://x", "--oidc-audience", "two words"],
        ["--oidc-issuer", "https://x", "--oidc-audience", "a\r\nb"],
        ["--oidc-issuer", "http://issuer.example/"],
    ],
)
def test_incompatible_bearer_flags_are_rejected(flags: list[str]) -> None:
    with pytest.raises(ConfigError):
        settings(*flags)


def test_plain_http_is_for_issuers_on_this_machine_or_not_asked() -> None:
    assert settings("--oidc-issuer", "http://localhost:8080/x").bearer
    assert settings("--oidc-issuer", "http://[::1]:8080/x").bearer
    assert settings("--oidc-issuer", "http://issuer.example/x", "--oidc-jwks", "keys.json").bearer


def test_targets_imply_the_meter() -> None:
    given = settings("--targets", "study-2010", "--time-scale", "20")
    assert given.meter
    assert given.partitions == PartitionSettings(STUDY_2010, 20)
    assert settings("--targets", "off").partitions == PartitionSettings(None, 1)
    assert not settings().meter


@pytest.mark.parametrize("arguments", [("--targets", "none"), ("--targets", "none.toml"), ("--time-scale", "2")])
def test_targets_that_there_are_not(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"targets|none\.toml"):
        settings(*arguments)
