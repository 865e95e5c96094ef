"""`lazulite stress`: a run against a server, what it leaves, and what it asks before it sends anything elsewhere."""

import json
import signal
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lazulite.cli import main, stress
from lazulite.cli.argv_secrets import split_passwords
from lazulite.cli.service_client import ServiceClient
from lazulite.cli.stress_flags import PLAN_FLAGS
from lazulite.stress import samples
from lazulite.stress.histogram import bucket_of
from lazulite.stress.plan import Load, Plan
from lazulite.stress.run import Progress, Step
from lazulite.stress.window import Window
from lazulite.testing import Storage, server
from tests.stress.test_verdict import step

QUICK = ("--seconds", "0.5", "--warm-seconds", "0.5")
CLOUD = "AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=http://192.0.2.1:9/a"
"""An address for documentation, which no machine has."""


TARGETS = 'base = "study-2010-strict"\npartition = 10\nburst_seconds = 1\n'
"""So low that any machine is faster."""


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("targets") / "low.toml"
    file.write_text(TARGETS, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def storage(targets: Path) -> Iterator[Storage]:
    with server(targets=str(targets)) as found:
        yield found


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("LAZULITE_CONNECTION_STRING", raising=False)


def stressed(storage: Storage, *arguments: object) -> int:
    return main(["stress", "--connection-string", storage.connection_string, *map(str, arguments)])


def left(storage: Storage, capsys: pytest.CaptureFixture[str], service: str = "table") -> str:
    """Return the names of the resources of a service."""
    capsys.readouterr()
    ports = (("--table-port", storage.port), ("--queue-port", storage.queue_port), ("--blob-port", storage.blob_port))
    flags = [str(each) for pair in ports for each in pair]
    assert main([service, "ls", *flags, "--account", "devstoreaccount1"]) == 0
    return capsys.readouterr().out


def test_a_run_has_a_verdict_and_leaves_results_alone(
    storage: Storage, targets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"r.{name}" for name in ("csv", "json", "svg", "png")}
    flags = [part for name, path in files.items() for part in (f"--{name}", path)]
    code = stressed(storage, *QUICK, "--targets", targets, "--rate", "2,200", *flags)
    printed = capsys.readouterr()
    assert code == 1
    assert "fail: the limit is the partition, which throttled " in printed.out
    found = json.loads(files["json"].read_text(encoding="utf-8"))
    assert set(found["steps"][1]["refused_by"]) == {"partition"}
    assert found["steps"][0]["refused_by"] == {}
    key = storage.development.key
    for path in files.values():
        content = path.read_bytes()
        assert content
        assert key.encode() not in content
        assert b"sig=" not in content
    assert key not in printed.out + printed.err
    assert samples.PREFIX not in left(storage, capsys)


def test_the_live_line_has_what_matters_first_and_fits_a_terminal() -> None:
    refused = Window(requests=617, refused=Counter(partition=68), latencies=Counter({bucket_of(0.0123): 617}))
    shown = Progress(1, 2, Load(64, 1500), 1, refused, 0.5, True, 9000)
    text = stress.live_text(shown)
    assert text == "1,234 of 1,500/s, p50 12.2 ms, p99 12.2 ms, 9.9% throttled, step 1/2"
    assert len(f"{text}, 0:07 left") < 80
    quick = Window(requests=99, latencies=Counter({bucket_of(0.001_23): 98, bucket_of(4.5): 1}))
    shown = Progress(2, 2, Load(8, None), 100, quick, 0.5, False, 9000)
    text = stress.live_text(shown)
    assert text == "19,800/s, p50 1.23 ms, p99 4,482 ms, 0.0% throttled, warm-up 2/2, 8 clients"
    assert len(text) < 80


def test_a_signal_ends_a_run_and_its_sample(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    async def interrupted(*_: object, **__: object) -> Sequence[Step]:
        made.append(left(storage, capsys))
        signal.raise_signal(signum)  # To this thread: the server has others, in which a signal would be late.
        return []

    monkeypatch.setattr(stress, "run_plan", interrupted)
    signum = signal.SIGTERM
    with pytest.raises(SystemExit) as ended:
        stressed(storage)
    assert ended.value.code == 143
    signum = signal.SIGINT
    assert stressed(storage) == 130
    assert all(samples.PREFIX in names for names in made)
    assert len(made) == 2
    assert samples.PREFIX not in left(storage, capsys)


def test_a_server_may_close_the_connection_that_made_the_sample(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = stress._KINDS["table"]

    def make_and_break(client: ServiceClient, name: str) -> None:
        kind.make(client, name)
        client._connection.sock.shutdown(socket.SHUT_RDWR)

    async def measured(*_: object, **__: object) -> Sequence[Step]:
        return [step(400)]

    monkeypatch.setattr(stress, "run_plan", measured)
    monkeypatch.setitem(stress._KINDS, "table", kind._replace(make=make_and_break))
    assert stressed(storage) == 0
    assert samples.PREFIX not in left(storage, capsys)


@pytest.mark.parametrize(("service", "workload"), [("table", "insert"), ("queue", "queue"), ("blob", "blob")])
def test_the_next_run_removes_what_a_killed_one_left(
    storage: Storage, capsys: pytest.CaptureFixture[str], service: str, workload: str
) -> None:
    killed, running = samples.new_name(2e9), samples.new_name(2e9)
    kind = stress._KINDS[service]
    with ServiceClient.from_connection_string(storage.connection_string, kind.access) as client:
        kind.make(client, killed)
        kind.make(client, running)
        (samples.lock_folder() / killed).touch()
        with samples.locked(running):
            assert stressed(storage, "--clean", "--workload", workload) == 0
        assert "1 left over by killed runs: removed" in capsys.readouterr().err
        assert left(storage, capsys, service).splitlines()[-1] == running
        kind.remove(client, running)
    assert list(samples.lock_folder().iterdir()) == []


def test_the_exit_code_is_that_of_the_verdict(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measured(*_: object, **__: object) -> Sequence[Step]:
        return [found]

    monkeypatch.setattr(stress, "run_plan", measured)
    for found, code in ((step(400), 0), (step(3000), 1), (step(400, busy=1.0), 3)):
        assert stressed(storage, "--rate", found.load.rate) == code


def test_another_machine_is_asked_about_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stress, "_clean", lambda *_: 0)
    code = main(["stress", "--connection-string", CLOUD, "--rate", "100", *QUICK])
    error = capsys.readouterr().err
    assert code == 2
    assert "http://192.0.2.1:9/a is not on this machine. The test sends about 1,100 requests there" in error
    assert "c2VjcmV0" not in error
    assert stress._is_here("127.0.0.1")
    assert stress._is_here("::1") in (True, False)
    assert not stress._is_here("192.0.2.1")


def test_flags_override_a_file(tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    async def planned(plan: Plan, *_: object, **__: object) -> Sequence[Step]:
        plans.append(plan)
        return [step(1)]

    monkeypatch.setattr(stress, "run_plan", planned)
    file = tmp_path / "plan.toml"
    file.write_text('keys = "buckets"\npartitions = 4\nclients = [1, 2]\n', encoding="utf-8")
    stressed(storage, "--plan", file, "--partitions", 8, "--margin", "25%")
    assert (plans[0].keys, plans[0].partitions, plans[0].clients, plans[0].margin) == ("buckets", 8, (1, 2), 0.25)
    assert {each.setting for each in PLAN_FLAGS} == {*Plan.__dataclass_fields__}


@pytest.mark.parametrize(
    "arguments", [("--workload", "delete"), ("--targets", "none"), ("--clients", "a"), ("--margin", "x"), ("--rate", 0)]
)
def test_wrong_flags_are_rejected(storage: Storage, arguments: Sequence[object]) -> None:
    try:
        code: object = stressed(storage, *arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2


@pytest.mark.parametrize("arguments", [["--connection-string", CLOUD], [f"--connection-string={CLOUD}"]])
def test_a_connection_string_leaves_the_command_line(arguments: Sequence[str]) -> None:
    bare, hidden = split_passwords(["stress", *arguments, "--yes"])
    assert hidden == {"LAZULITE_CONNECTION_STRING": CLOUD}
    assert "c2VjcmV0" not in " ".join(bare)
    assert split_passwords(bare) == (bare, {})


@pytest.mark.parametrize("where", ["env:CLOUD", "file:cloud.txt"])
def test_a_connection_string_is_taken_from_a_variable_or_a_file(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stress, "_clean", lambda *_: 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOUD", CLOUD)
    (tmp_path / "cloud.txt").write_text(f"{CLOUD}\n", encoding="utf-8")
    arguments = ["stress", "--connection-string", where]
    assert split_passwords(arguments) == (arguments, {})
    assert main(arguments) == 2
    assert "http://192.0.2.1:9/a is not on this machine" in capsys.readouterr().err
