"""`lazulite serve` with a certificate, as a process of its own."""

import signal
import ssl
from pathlib import Path
from urllib.request import urlopen

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueServiceClient

from lazulite.cli import main
from tests.certificates import Authority, Files
from tests.server_process import SECONDS_MAX

from .test_serve import lazulite, rejected, serving


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def files(authority: Authority) -> Files:
    return authority.issue()


def tls(files: Files) -> list[str]:
    return [*files.flags, "--silent"]


def health(url: str, authority: Authority) -> bytes:
    with urlopen(f"{url}health", timeout=SECONDS_MAX, context=ssl.create_default_context(cafile=authority.root)) as got:
        said: bytes = got.read()
        return said


def urls(line: str) -> list[str]:
    return [word for word in line.split() if word.startswith("http")]


def table_names(connection_string: str, authority: Authority) -> list[str]:
    root = str(authority.root)
    with TableServiceClient.from_connection_string(connection_string, retry_total=0, connection_verify=root) as client:
        return [table.name for table in client.list_tables()]


def test_a_certificate_makes_the_table_port_https(tmp_path: Path, authority: Authority, files: Files) -> None:
    with serving(tmp_path / "data", *tls(files)) as server:
        (url,) = urls(server.lines[0])
        assert url.startswith("https://127.0.0.1:")
        assert "DefaultEndpointsProtocol=https;AccountName=devstoreaccount1;" in server.lines[1]
        assert f"TableEndpoint={url}devstoreaccount1;" in server.lines[1]
        assert health(url, authority) == b'{"status":"ok"}'
        assert table_names(server.lines[1].strip(), authority) == []
        assert server.stop() == (0, "")


def test_http_and_https_at_once(tmp_path: Path, authority: Authority, files: Files) -> None:
    with serving(tmp_path / "data", *tls(files), "--https-port", "0", lines=3) as server:
        plain, secure = urls(server.lines[0])
        assert plain.startswith("http://")
        assert secure.startswith("https://")
        for url, line in zip((plain, secure), server.lines[1:], strict=True):
            assert f"TableEndpoint={url}devstoreaccount1;" in line
            assert health(url, authority) == b'{"status":"ok"}'
            assert table_names(line.strip(), authority) == []
        assert server.stop() == (0, "")


def test_key_and_certificate_may_be_one_file(tmp_path: Path, authority: Authority, files: Files) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(files.key.read_bytes() + files.cert.read_bytes())
    with serving(tmp_path / "data", "--cert", str(both), "--silent") as server:
        assert table_names(server.lines[1].strip(), authority) == []
        assert server.stop() == (0, "")


def test_announced_command_prints_https(tmp_path: Path, authority: Authority, files: Files) -> None:
    location = str(tmp_path / "data")
    added = lazulite("account", "add", "orders", "-l", location, "--https").stdout
    assert "DefaultEndpointsProtocol=https;" in added
    assert "TableEndpoint=https://127.0.0.1:10002/orders;" in added
    with serving(tmp_path / "data", *tls(files)) as server:
        hint = server.lines[1].split(": lazulite ")[1].split()
        assert hint[-1] == "--https"
        assert table_names(lazulite(*hint).stdout.strip(), authority) == []
        token = ["sas", "account", "--permissions", "l", "--expiry", "1h", "--protocol", "https", "--url"]
        url = lazulite(*token, *hint[1:]).stdout.strip().replace("/?", "/Tables?")
        with urlopen(url, timeout=SECONDS_MAX, context=ssl.create_default_context(cafile=authority.root)) as answer:
            assert answer.status == 200
        assert server.stop() == (0, "")


def test_sighup_reads_the_certificate_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, authority: Authority, files: Files
) -> None:
    with serving(tmp_path / "data", *tls(files)) as server:
        (url,) = urls(server.lines[0])
        assert server.process.stderr is not None
        files.key.write_text("no key")
        server.process.send_signal(signal.SIGHUP)
        line = server.process.stderr.readline()
        assert line.startswith(f"lazulite: the certificate was not reloaded: {files.key} holds no private key in PEM")
        assert health(url, authority) == b'{"status":"ok"}'
        other = Authority(tmp_path)
        renewed = other.issue("renewed")
        files.cert.write_bytes(renewed.cert.read_bytes())
        files.key.write_bytes(renewed.key.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr.readline() == "lazulite: the certificate was reloaded\n"
        assert health(url, other) == b'{"status":"ok"}'
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            health(url, authority)
        assert server.stop() == (0, "")


def test_files_that_cannot_be_used_are_rejected(tmp_path: Path, authority: Authority) -> None:
    good, other, locked = authority.issue("good"), authority.issue("other"), authority.issue("locked", b"secret")
    garbage, half = tmp_path / "garbage.pfx", tmp_path / "half.pem"
    garbage.write_bytes(bytes(range(256)))
    half.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    missing, directory = tmp_path / "missing.pem", tmp_path
    for cert, key, said in [
        (missing, good.key, f"cannot read {missing}: No such file or directory"),
        (good.cert, missing, f"cannot read {missing}: No such file or directory"),
        (directory, good.key, f"cannot read {directory}: Is a directory"),
        (good.cert, other.key, f"the key in {other.key} is not that of the certificate in {good.cert}"),
        (garbage, good.key, f"{garbage} holds no certificate in PEM; openssl pkcs12"),
        (good.cert, good.cert, f"{good.cert} holds no private key in PEM"),
        (good.cert, locked.key, f"the key in {locked.key} is encrypted"),
        (half, good.key, f"cannot use {half} with the key in {good.key}: "),
    ]:
        location = tmp_path / "data"
        line = rejected(1, "serve", "-l", str(location), "--table-port", "0", "--cert", str(cert), "--key", str(key))
        assert line.startswith(f"lazulite: {said}"), line
        assert "secret" not in line
        assert not location.exists()


@pytest.mark.parametrize("arguments", [["--key", "key.pem"], ["--https-port", "0"], ["--queue-https-port", "0"]])
def test_flags_of_tls_need_a_certificate(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert capsys.readouterr().err == "lazulite: --key and the ports for HTTPS need --cert\n"


def test_pfx_password_error_names_the_conversion() -> None:
    assert "openssl pkcs12" in rejected(2, "serve", "--cert", "a.pfx", "--pwd", "secret")


def test_a_port_for_https_that_is_in_use_is_rejected(tmp_path: Path, files: Files) -> None:
    with serving(tmp_path / "data", "-s") as server:
        line = rejected(
            1, "serve", "-l", str(tmp_path / "other"), "--table-port", "0", *tls(files), "--https-port", server.port
        )
        assert server.port in line
        assert server.stop() == (0, "")


def test_each_service_has_https_and_connection_strings_have_all_endpoints_of_a_scheme(
    tmp_path: Path, authority: Authority, files: Files
) -> None:
    services = ("--services", "table,queue", "--https-port", "0", "--queue-https-port", "0")
    with serving(tmp_path / "data", *tls(files), *services, lines=4) as server:
        assert [url.partition(":")[0] for url in urls(server.lines[3])] == ["http", "https"]
        for scheme, line in zip(("http", "https"), server.lines[1:3], strict=True):
            string = line.strip()
            fields = dict(part.split("=", 1) for part in string.strip(";").split(";"))
            assert {fields[f"{name}Endpoint"].partition(":")[0] for name in ("Table", "Queue")} == {scheme}
            root = str(authority.root)
            with QueueServiceClient.from_connection_string(string, retry_total=0, connection_verify=root) as client:
                assert list(client.list_queues()) == []
            assert table_names(string, authority) == []
        assert server.stop() == (0, "")
