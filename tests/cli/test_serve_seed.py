"""`lazulite serve --seed`, with workers and accounts; and accounts of a seed that `lazulite apply` adds."""

import base64
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

import lazulite.testing
from lazulite.auth.accounts.switches import Switches
from lazulite.cli import main
from lazulite.settings.config import account_file
from tests.server_process import FREE_PORTS, running

KEYS = [base64.b64encode(bytes([number]) * 64).decode() for number in range(3)]
STATE = """
[accounts.shop]
key = { file = "shop.key" }
versioning = true

[accounts.shop.tables.Orders]
rows = [{ PartitionKey = "a", RowKey = "1", Total = 1.5 }]
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "shop.key").write_text(KEYS[1], encoding="ascii")
    path = tmp_path / "state.toml"
    path.write_text(STATE, encoding="utf-8")
    return path


@pytest.mark.parametrize("store", [["--in-memory"], ["--workers", "2"]])
def test_a_server_begins_with_a_seed(state: Path, tmp_path: Path, store: list[str]) -> None:
    location = ["--location", str(tmp_path / "data")] if store != ["--in-memory"] else []
    with (
        running("--silent", *FREE_PORTS, "--seed", str(state), *store, *location) as server,
        TableServiceClient(
            f"http://127.0.0.1:{server.port}/shop", credential=AzureNamedKeyCredential("shop", KEYS[1])
        ) as service,
    ):
        assert service.get_table_client("Orders").get_entity("a", "1")["Total"] == 1.5


def test_a_wrong_seed_ends_the_start_before_anything_is_served(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.write_text("[tables.Orders]\nrows = 1", encoding="utf-8")
    assert main(["serve", *FREE_PORTS, "--location", str(tmp_path / "data"), "--seed", str(state)]) == 1
    assert f"{state}, line 2: tables.Orders.rows: must be an array" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_apply_adds_an_account_and_changes_what_differs(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "data"
    with lazulite.testing.server(location) as storage:
        ports = {"table": storage.port, "queue": storage.queue_port, "blob": storage.blob_port}
        flags = [word for name, port in ports.items() for word in (f"--{name}-port", str(port))]
        command = ["apply", str(state), "--location", str(location), *flags]
        assert main(command) == 0
        assert capsys.readouterr().out.splitlines() == ["accounts: 1 created", "tables: 1 created", "rows: 1 created"]
        assert main(command) == 0
        assert capsys.readouterr().out.splitlines()[0] == "accounts: 1 unchanged"
        monkeypatch.setenv("SECOND", KEYS[2])
        state.write_text(STATE.replace("versioning = true", "key2 = { variable = 'SECOND' }"), encoding="utf-8")
        assert main(command) == 0
        assert capsys.readouterr().out.splitlines()[0] == "accounts: 1 replaced"
        state.write_text("[accounts.other]\nversioning = true", encoding="utf-8")
        assert main(command) == 1
        assert "line 1: accounts.other: there is no account other; a new one needs a key" in capsys.readouterr().err
    shop = account_file(location).load()["shop"]
    assert [base64.b64encode(key).decode() for key in shop.keys] == KEYS[1:]
    assert shop.switches == Switches(versioning=True)
