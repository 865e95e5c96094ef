import base64
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.cli import main
from lazulite.cli.connection_string import path_style, secondary_of

PUBLIC_KEY = base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "type[Run]":
    monkeypatch.chdir(tmp_path)
    for variable in ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"):
        monkeypatch.delenv(variable, raising=False)
    Run.capsys = capsys
    return Run


class Run:
    """Runs `lazulite connection-string`."""

    capsys: pytest.CaptureFixture[str]

    def __init__(self, *arguments: str) -> None:
        self.code = main(["connection-string", *arguments])
        self.out, self.err = self.capsys.readouterr()


def test_the_development_account_by_default(run: type[Run]) -> None:
    assert run().out == (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={PUBLIC_KEY};"
        "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
        "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
        "QueueSecondaryEndpoint=http://127.0.0.1:10001/devstoreaccount1-secondary;"
        "BlobSecondaryEndpoint=http://127.0.0.1:10000/devstoreaccount1-secondary;\n"
    )


def test_an_account_is_chosen(run: type[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAZULITE_ACCOUNTS", "a:MQ==:Mg==;b:Mw==")
    assert run().err == "lazulite: there are several accounts; pass --account with one of a, b\n"
    assert "AccountName=a;AccountKey=MQ==;" in run("--account", "a").out
    assert "AccountName=a;AccountKey=Mg==;" in run("--account", "a", "--key", "2").out
    assert run("--account", "b", "--key", "2").err == "lazulite: account b has no key 2\n"


def test_bad_accounts_in_the_environment(run: type[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURITE_ACCOUNTS", "nonsense")
    rejected = run()
    assert rejected.code == 1
    assert rejected.err.startswith("lazulite: AZURITE_ACCOUNTS: ")


def test_a_token_instead_of_a_key(run: type[Run]) -> None:
    printed = run("--sas", "?sv=2019-02-02&sig=x%3D", "--table-port", "9", "--queue-port", "8", "--blob-port", "7").out
    assert printed == (
        "TableEndpoint=http://127.0.0.1:9/devstoreaccount1;QueueEndpoint=http://127.0.0.1:8/devstoreaccount1;"
        "BlobEndpoint=http://127.0.0.1:7/devstoreaccount1;"
        "QueueSecondaryEndpoint=http://127.0.0.1:8/devstoreaccount1-secondary;"
        "BlobSecondaryEndpoint=http://127.0.0.1:7/devstoreaccount1-secondary;"
        "SharedAccessSignature=sv=2019-02-02&sig=x%3D\n"
    )


def test_sdk_accepts_both_connection_strings(run: type[Run]) -> None:
    for arguments in ([], ["--sas", "sv=2019-02-02&sig=x%3D"]):
        with TableServiceClient.from_connection_string(run(*arguments).out.strip()) as client:
            assert client.url.startswith("http://127.0.0.1:10002/devstoreaccount1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1/a"),
        ("0.0.0.0", "http://127.0.0.1:1/a"),
        ("::", "http://[::1]:1/a"),
        ("::1", "http://[::1]:1/a"),
        ("tables.example", "http://tables.example:1/a"),
    ],
)
def test_wildcard_addresses_become_usable_urls(host: str, url: str) -> None:
    assert path_style("a", host, 1) == url


def test_services_on_one_port_have_endpoints_in_host_style(run: type[Run]) -> None:
    plain = ("--secondary", "none")
    assert run("--table-port", "1", "--queue-port", "1", "--https", *plain).out.endswith(
        "TableEndpoint=https://devstoreaccount1.table.localhost:1;"
        "QueueEndpoint=https://devstoreaccount1.queue.localhost:1;"
        "BlobEndpoint=https://127.0.0.1:10000/devstoreaccount1;\n"
    )
    ports = ("--table-port", "1", "--queue-port", "1", "--blob-port", "1")
    assert run(*ports, "--host-suffix", "table.example.org", *plain).out.endswith(
        "TableEndpoint=http://devstoreaccount1.table.example.org:1;"
        "QueueEndpoint=http://devstoreaccount1.queue.example.org:1;"
        "BlobEndpoint=http://devstoreaccount1.blob.example.org:1;\n"
    )
    printed = run("--queue-port", "1", "--queue-host", "::", "--https", "--sas", "sv=1").out
    assert ";QueueEndpoint=https://[::1]:1/devstoreaccount1;BlobEndpoint=https://127.0.0.1:10000" in printed


def test_the_forms_of_secondary_endpoints(run: type[Run]) -> None:
    assert run("--secondary", "host").out.endswith(
        ";TableSecondaryEndpoint=127.0.0.1:10002/devstoreaccount1-secondary;"
        "QueueSecondaryEndpoint=127.0.0.1:10001/devstoreaccount1-secondary;"
        "BlobSecondaryEndpoint=127.0.0.1:10000/devstoreaccount1-secondary;\n"
    )
    assert run("--queue-port", "1", "--blob-port", "1").out.endswith(
        ";QueueSecondaryEndpoint=http://devstoreaccount1-secondary.queue.localhost:1;"
        "BlobSecondaryEndpoint=http://devstoreaccount1-secondary.blob.localhost:1;\n"
    )


@pytest.mark.parametrize(
    ("endpoint", "secondary"),
    [
        ("http://127.0.0.1:1/a", "http://127.0.0.1:1/a-secondary"),
        ("http://a.example:1/a", "http://a.example:1/a-secondary"),
        ("https://a.table.localhost:1", "https://a-secondary.table.localhost:1"),
        ("https://a.a.a:1", "https://a-secondary.a.a:1"),
    ],
)
def test_the_secondary_of_an_endpoint(endpoint: str, secondary: str) -> None:
    assert secondary_of("a", endpoint) == secondary
