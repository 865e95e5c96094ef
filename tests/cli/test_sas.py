from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account
from lazulite.auth.sas import MalformedSasError, parse_account_sas, parse_sas_date
from lazulite.blob.auth.sas import BlobSas, parse_blob_sas, resource_fields
from lazulite.cli import main
from lazulite.cli.parser import build_parser
from lazulite.cli.sas import resolve_time, sign
from lazulite.queue.credentials import MARKER, QueueSas, parse_queue_sas, sign_queue_sas
from lazulite.table.credentials import parse_table_sas

NOW = parse_sas_date("2024-02-28T23:30:00Z")
ACCOUNT = Account("orders", (b"one", b"two"))


def token(*arguments: str) -> dict[str, str]:
    args = build_parser().parse_args(["sas", *arguments])
    return dict(parse_qsl(sign(args, ACCOUNT, NOW), strict_parsing=True))


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("90s", "2024-02-28T23:31:30Z"),
        ("30m", "2024-02-29T00:00:00Z"),
        ("2h", "2024-02-29T01:30:00Z"),
        ("7d", "2024-03-06T23:30:00Z"),
        ("4w", "2024-03-27T23:30:00Z"),
        ("2030-01-31", "2030-01-31"),
        ("", ""),
    ],
)
def test_times(text: str, resolved: str) -> None:
    assert resolve_time(text, NOW) == resolved


def test_an_account_token() -> None:
    given = token("account", "--permissions", "rl", "--expiry", "2h", "--start", "2024-01-01", "--ip", "10.0.0.1")
    signature = given.pop("sig")
    expected = {"sv": "2019-02-02", "ss": "t", "srt": "sco", "sp": "rl"}
    assert given == expected | {"se": "2024-02-29T01:30:00Z", "st": "2024-01-01", "sip": "10.0.0.1"}
    assert parse_account_sas(given | {"sig": signature}).is_signed_by(ACCOUNT)


def test_a_table_token_with_a_key_range() -> None:
    keys = ["--spk", "a&b", "--srk", "1", "--end-partition", "c", "--end-row", "ü"]
    given = token("table", "Orders", "--sp", "dr", "--se", "1h", "--spr", "https,http", *keys)
    signature = given.pop("sig")
    expected = {"sv": "2019-02-02", "tn": "Orders", "sp": "rd", "se": "2024-02-29T00:30:00Z", "spr": "https,http"}
    assert given == expected | {"spk": "a&b", "srk": "1", "epk": "c", "erk": "ü"}
    assert parse_table_sas(given | {"sig": signature}).is_signed_by(ACCOUNT)


def test_a_queue_token() -> None:
    given = token("queue", "jobs", "--sp", "pra", "--se", "1h")
    signature = given.pop("sig")
    assert given == {"sv": "2019-02-02", "sp": "rap", "se": "2024-02-29T00:30:00Z"}
    assert parse_queue_sas(given | {"sig": signature, MARKER: "jobs"}).is_signed_by(ACCOUNT)
    assert not parse_queue_sas(given | {"sig": signature, MARKER: "others"}).is_signed_by(ACCOUNT)
    by_policy = token("queue", "jobs", "--policy", "readers")
    assert set(by_policy) == {"sv", "si", "sig"}
    assert by_policy["si"] == "readers"


@pytest.mark.parametrize(
    "arguments",
    [("Jobs", "--sp", "r", "--se", "1h"), ("jobs", "--sp", "d", "--se", "1h"), ("jobs", "--sp", "r"), ("jobs",)],
)
def test_queue_tokens_that_are_none(arguments: tuple[str, ...]) -> None:
    with pytest.raises(MalformedSasError):
        token("queue", *arguments)


def test_an_old_queue_token_signs_neither_address_nor_protocol() -> None:
    sas = QueueSas(queue="jobs", permission="r", expiry="2030-01-01", ip="10.0.0.1", version="2014-02-14")
    with pytest.raises(MalformedSasError, match="sip and spr"):
        sign_queue_sas(ACCOUNT, sas)
    signed = sign_queue_sas(ACCOUNT, replace(sas, ip=""))
    fields = dict(parse_qsl(signed)) | {MARKER: "jobs"}
    assert parse_queue_sas(fields).string_to_sign("orders") == "r\n\n2030-01-01\n/orders/jobs\n\n2014-02-14"
    with pytest.raises(MalformedSasError, match="one queue"):
        parse_queue_sas({"sv": "2019-02-02"})


@pytest.mark.parametrize(
    ("flags", "url"),
    [((), "http://127.0.0.1:10001"), (("--queue-host", "::", "--queue-port", "1", "--https"), "https://[::1]:1")],
)
def test_the_url_of_a_queue(
    flags: tuple[str, ...], url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["sas", "queue", "jobs", "--sp", "r", "--se", "1h", "--url", "-l", str(tmp_path), *flags]) == 0
    assert capsys.readouterr().out.startswith(f"{url}/devstoreaccount1/jobs?sv=")


def blob_fields(given: dict[str, str], path: str, **selected: str) -> BlobSas:
    fields = given | selected
    return parse_blob_sas({**fields, **resource_fields(path, fields)})


def test_a_container_token() -> None:
    given = token("container", "photos", "--sp", "lftyxdwcar", "--se", "1h", "--rsct", "text/plain")
    signature = given.pop("sig")
    expected = {"sv": "2021-12-02", "sr": "c", "sp": "racwdxyltf", "se": "2024-02-29T00:30:00Z", "rsct": "text/plain"}
    assert given == expected
    assert blob_fields(given | {"sig": signature}, "photos/a").is_signed_by(ACCOUNT)
    assert not blob_fields(given | {"sig": signature}, "others/a").is_signed_by(ACCOUNT)
    assert set(token("container", "photos", "--policy", "readers")) == {"sv", "sr", "si", "sig"}


def test_a_blob_token() -> None:
    given = token("blob", "photos/a b/é", "--sp", "tr", "--se", "1h", "--content-disposition", "inline")
    assert blob_fields(given, "photos/a%20b/%C3%A9").is_signed_by(ACCOUNT)
    assert not blob_fields(given, "photos/a").is_signed_by(ACCOUNT)
    assert (given["sr"], given["sp"], given["rscd"]) == ("b", "rt", "inline")
    given = token("blob", "photos/a\\b.", "--sp", "r", "--se", "1h")
    assert blob_fields(given, "photos/a/b").is_signed_by(ACCOUNT)


@pytest.mark.parametrize(
    ("flag", "name", "kind"), [("--snapshot", "snapshot", "bs"), ("--version-id", "versionid", "bv")]
)
def test_a_token_for_a_snapshot_or_version(flag: str, name: str, kind: str) -> None:
    time = "2024-01-01T00:00:00.0000000Z"
    given = token("blob", "photos/a", "--sp", "r", "--se", "1h", flag, time)
    assert given["sr"] == kind
    sas = blob_fields(given, "photos/a", **{name: time})
    sas.terms()
    assert sas.is_signed_by(ACCOUNT)
    assert not blob_fields(given, "photos/a").is_signed_by(ACCOUNT)


@pytest.mark.parametrize("name", ["photos/a/b", "photos/a/b/"])
def test_a_token_for_a_directory(name: str) -> None:
    given = token("blob", name, "--sp", "r", "--se", "1h", "--directory")
    assert (given["sr"], given["sdd"]) == ("d", "2")
    sas = blob_fields(given, "photos/a/b/c")
    sas.terms()
    assert sas.is_signed_by(ACCOUNT)


@pytest.mark.parametrize(
    "arguments",
    [
        ("container", "Photos", "--sp", "r", "--se", "1h"),
        ("container", "photos", "--sp", "p", "--se", "1h"),
        ("container", "photos", "--sp", "r"),
        ("container", "photos", "--sp", "r", "--se", "1h", "--rsct", "a\nb"),
        ("blob", "photos", "--sp", "r", "--se", "1h"),
        ("blob", "photos/", "--sp", "r", "--se", "1h"),
        ("blob", "p/a", "--sp", "r", "--se", "1h"),
        ("blob", "photos/" + "a" * 1025, "--sp", "r", "--se", "1h"),
        ("blob", "photos/a", "--sp", "l", "--se", "1h"),
    ],
)
def test_blob_tokens_that_are_none(arguments: tuple[str, ...]) -> None:
    with pytest.raises(MalformedSasError):
        token(*arguments)


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("container", "photos"), "http://127.0.0.1:10000/devstoreaccount1/photos?sv="),
        (("blob", "photos/a b/c?"), "http://127.0.0.1:10000/devstoreaccount1/photos/a%20b/c%3F?sv="),
        (
            ("blob", "photos/a", "--snapshot", "t:1"),
            "http://127.0.0.1:10000/devstoreaccount1/photos/a?snapshot=t%3A1&sv=",
        ),
    ],
)
def test_the_url_of_a_blob(
    arguments: tuple[str, ...], start: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["sas", *arguments, "--sp", "r", "--se", "1h", "--url", "-l", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(start)


def test_a_table_token_by_policy() -> None:
    given = token("table", "Orders", "--policy", "readers")
    assert given.keys() == {"sv", "tn", "si", "sig"}
    assert given["si"] == "readers"


def test_either_key_signs() -> None:
    arguments = ["table", "Orders", "--permissions", "r", "--expiry", "1h"]
    second = token(*arguments, "--key", "2")
    assert second["sig"] != token(*arguments)["sig"]
    assert parse_table_sas(second).is_signed_by(Account("orders", (b"two",)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", "--permissions", "rl"],
        ["account", "--permissions", "rz", "--expiry", "1h"],
        ["account", "--permissions", "rr", "--expiry", "1h"],
        ["account", "--permissions", "", "--expiry", "1h"],
        ["account", "--permissions", "r", "--expiry", "soon"],
        ["account", "--permissions", "r", "--expiry", "1h", "--services", "x"],
        ["account", "--permissions", "r", "--expiry", "1h", "--srt", "x"],
        ["account", "--permissions", "r", "--expiry", "1h", "--ip", "::1"],
        ["table", "Orders"],
        ["table", "Orders", "--permissions", "r"],
        ["table", "Orders", "--expiry", "1h"],
        ["table", "Orders", "--permissions", "w", "--expiry", "1h"],
        ["table", "Orders", "--permissions", "r", "--expiry", "1h", "--srk", "1"],
        ["table", "Orders", "--permissions", "r", "--expiry", "999999w"],
        ["table", "no/table", "--permissions", "r", "--expiry", "1h"],
    ],
)
def test_flags_without_a_valid_token_are_rejected(arguments: list[str]) -> None:
    with pytest.raises(MalformedSasError):
        token(*arguments)


@pytest.fixture
def location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_urls(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--permissions", "r", "--expiry", "1h", "--url", "--location", str(location), "--table-port", "9"]
    assert main(["sas", "table", "Orders", *common]) == 0
    url = urlsplit(capsys.readouterr().out.strip())
    assert (url.netloc, url.path) == ("127.0.0.1:9", "/devstoreaccount1/Orders")
    assert parse_table_sas(dict(parse_qsl(url.query))).is_signed_by(DEVELOPMENT_ACCOUNT)
    assert main(["sas", "account", *common]) == 0
    assert urlsplit(capsys.readouterr().out).path == "/devstoreaccount1/"


@pytest.mark.parametrize(("services", "port"), [("t", 9), ("q", 8), ("bq", 8), ("tq", 9), ("b", 7), ("f", 9)])
def test_the_url_of_an_account_sas_is_that_of_a_service_that_it_has(
    services: str, port: int, location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ports = ["--table-port", "9", "--queue-port", "8", "--blob-port", "7"]
    common = ["--permissions", "r", "--expiry", "1h", "--url", "--location", str(location), *ports]
    assert main(["sas", "account", "--services", services, *common]) == 0
    assert capsys.readouterr().out.startswith(f"http://127.0.0.1:{port}/devstoreaccount1/?sv=")


def test_rejections_are_one_line(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sas", "table", "Orders", "--location", str(location)]) == 2
    expected = "lazulite: pass --permissions and --expiry, or a stored --policy that has them\n"
    assert capsys.readouterr().err == expected
    arguments = ["sas", "account", "--permissions", "r", "--expiry", "1h", "--key", "2", "--location", str(location)]
    assert main(arguments) == 1
    assert capsys.readouterr().err == "lazulite: account devstoreaccount1 has no key 2\n"
