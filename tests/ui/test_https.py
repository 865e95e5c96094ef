"""The explorer and commands reach services that listen by HTTPS alone."""

from pathlib import Path

import pytest

from lazulite.cli import main
from tests.certificates import Authority
from tests.server_process import running
from tests.ui.explorer import Client

SERVICES = ("table", "queue", "blob")


def test_pages_and_commands_work_with_services_that_have_https_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    authority, location = Authority(tmp_path), tmp_path / "data"
    location.mkdir()
    flags = ("--location", str(location), "--services", ",".join(SERVICES), "--ui-port", "0", "--silent")
    with running(*flags, *authority.issue().flags, lines=5):
        client = Client((location / "explorer-link").read_text(encoding="ascii").strip())
        account = "/devstoreaccount1"
        assert client.post(f"{account}/tables?do=create", {"name": "Orders"}).status == 303
        entity = {"partition": "p", "row": "r", "etag": "", "name": "N", "type": "Int64", "text": "9007199254740993"}
        assert client.post(f"{account}/tables/Orders/new?do=save", entity).status == 303
        (row,) = client.json(f"{account}/tables/Orders")["rows"]
        assert (row["row"], row["cells"][0]["text"]) == ("r", "9007199254740993")
        assert client.post(f"{account}/queues?do=create", {"name": "jobs"}).status == 303
        assert client.post(f"{account}/queues/jobs?do=put", {"text": "hello", "encoding": "text"}).status == 303
        (message,) = client.json(f"{account}/queues/jobs")["messages"]
        assert message["shown"]["text"] == "hello"
        assert client.post(f"{account}/blobs?do=create", {"name": "files", "access": ""}).status == 303
        shown = client.json(f"{account}/account")
        assert all(shown["endpoints"][service].startswith("https://127.0.0.1:") for service in SERVICES)
        assert shown["connection_command"].endswith(" --https")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.root))
        for command, found in (("table", "Orders"), ("queue", "jobs"), ("blob", "files")):
            assert main([command, "ls", "--location", str(location)]) == 0, capsys.readouterr().err
            assert capsys.readouterr().out == f"{found}\n"
