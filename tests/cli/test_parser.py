import ast
import errno
import mmap
import re
import subprocess
import sys
from argparse import Namespace
from dataclasses import fields

import pytest

from lazulite import __version__
from lazulite.cli import account, main
from lazulite.cli.errors import CommandError
from lazulite.cli.parser import build_parser
from lazulite.cli.serve_flags import LIMIT_FLAGS
from lazulite.server.limits import Limits
from lazulite.settings.config import Settings


def parse(*arguments: str) -> Namespace:
    return build_parser().parse_args(arguments)


@pytest.mark.parametrize(
    ("spellings", "field", "value"),
    [
        (["--location=x", "-lx"], "location", "x"),
        (["--table-host=::1", "--tableHost=::1", "--table-host=[::1]"], "table_host", "::1"),
        (["--table-port=0", "--tablePort=0"], "table_port", 0),
        (["--queue-host=::1", "--queueHost=::1", "--queue-host=[::1]"], "queue_host", "::1"),
        (["--queue-port=0", "--queuePort=0"], "queue_port", 0),
        (["--in-memory", "--inMemoryPersistence"], "in_memory", True),
        (["--silent", "-s"], "silent", True),
        (["--debug=x", "-dx"], "debug", "x"),
        (["--skip-api-version-check", "--skipApiVersionCheck"], "skip_api_version_check", True),
        (["--loose", "-L"], "loose", True),
        (["--path-style-only", "--disable-product-style-url", "--disableProductStyleUrl"], "path_style_only", True),
        (["--allow-development-key"], "allow_development_key", True),
        (["--page-seconds=2.5"], "page_seconds", 2.5),
        (["--connections=3"], "connections", 3),
        (["--host-suffix=table.x", "--host-suffix=.TABLE.x."], "host_suffix", ["table.x"]),
        (["--cert=x"], "cert", "x"),
        (["--key=x"], "key", "x"),
        (["--https-port=0"], "table_https_port", 0),
    ],
)
def test_every_spelling_of_a_flag_has_the_same_value(spellings: list[str], field: str, value: object) -> None:
    for spelling in spellings:
        parsed = getattr(parse("serve", spelling), field)
        assert (str(parsed) if field in ("location", "debug", "cert", "key") else parsed) == value


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nope"],
        ["nope"],
        ["serve", "--nope"],
        ["serve", "--sil"],
        ["serve", "extra"],
        ["serve", "--table-port", "65536"],
        ["serve", "--table-port", "-1"],
        ["serve", "--table-port", "x\ny"],
        ["serve", "--table-host", ""],
        ["serve", "--table-host", "a;AccountKey=b"],
        ["serve", "--host-suffix", ""],
        ["serve", "--host-suffix", "a b"],
        ["serve", "--host-suffix", "a..b"],
        ["serve", "--host-suffix", "0.0.1"],
        ["serve", "--host-suffix", "a:1"],
        ["serve", "--allowed-host", "http://a"],
        ["serve", "--allowed-host", "a:1"],
        ["serve", "--allowed-host", "*.a"],
        ["serve", "--allowed-host", "10.0.0.1"],
        ["serve", "--trusted-proxy", "proxy.example"],
        ["serve", "--trusted-proxy", "10.0.0.1/8"],
        ["serve", "--copy-source-host", "http://a"],
        ["serve", "--copy-source-host", "a:1"],
        ["serve", "--copy-source-host", "*"],
        ["serve", "--copy-source-host", "a.*.b"],
        ["serve", "--copy-source-host", "10.0.0.1/8"],
        ["serve", "--https-port", "x"],
        ["serve", "--https"],
        ["serve", "--connections", "0"],
        ["serve", "--drain-seconds", "nan"],
        ["serve", "--drain-seconds", "x"],
        ["account"],
        ["account", "rotate-key", "orders"],
        ["account", "rotate-key", "orders", "--key", "3"],
        ["sas"],
        ["sas", "account"],
        ["sas", "table", "T", "--protocol", "http"],
    ],
)
def test_a_wrong_command_line_gets_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.fullmatch(r"lazulite: .+\n", output.err)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["serve", "--tabel-port", "1"],
            'unknown flag --tabel-port; did you mean --table-port? (see "lazulite serve --help")',
        ),
        (
            ["serve", "--tableprot=1"],
            "unknown flag --tableprot; did you mean --table-port?",
        ),
        (
            ["account", "add", "--locaton", "x"],
            '--locaton; did you mean --location? (see "lazulite account add --help")',
        ),
        (["blob", "put", "f", "--no-overwrit"], 'did you mean --no-overwrite? (see "lazulite blob put --help")'),
        (
            ["--location", "x", "serve"],
            'unknown flag --location; flags stand behind the command (see "lazulite --help")',
        ),
        (["account", "--location", "x", "list"], 'flags stand behind the command (see "lazulite account --help")'),
        (["serve", "--port", "1"], "--port; did you mean --table-port or --queue-port or --blob-port? (see "),
        (["serve", "--host=x"], "--host; did you mean --table-host or --queue-host or --blob-host? (see "),
        (["serve", "--zzz"], 'unknown flag --zzz (see "lazulite serve --help")'),
        (["serve", "data"], 'unexpected argument: data (see "lazulite serve --help")'),
        (["serve", "-z"], 'unexpected argument: -z (see "lazulite serve --help")'),
        (["serv"], 'did you mean serve? (see "lazulite --help")'),
        (["account", "ad"], 'did you mean add? (see "lazulite account --help")'),
        (["sas", "table", "T", "--protocol", "htps"], "--protocol/--spr: 'htps' is not one of https, "),
        (["copy", "--fro=postgresql://u:secret@h/d"], "unknown flag --fro; did you mean --from?"),
    ],
)
def test_a_misspelt_word_gets_the_nearest_one_and_the_help_that_lists_it(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
    assert "secret" not in said


def test_values_and_texts_behind_two_dashes_are_no_flags() -> None:
    assert parse("queue", "peek", "--", "--queue").queue == "--queue"
    assert parse("blob", "put", "-", "box/blob").file == "-"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--oauth", "basic"], "bearer tokens are verified, with --oidc-issuer"),
        (["--disableTelemetry"], "the server sends no telemetry"),
        (["--disable-telemetry"], "the server sends no telemetry"),
        (["--extentMemoryLimit", "64"], "with --in-memory, the memory of the machine is the limit"),
        (["--blobKeepAliveTimeout=5"], "set --keep-alive-seconds for all services"),
    ],
)
def test_flags_of_azurite_without_effect_are_accepted_with_a_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, parsed = parse("serve", "--silent"), parse("serve", *arguments, "--silent")
    assert parsed == plain
    flag = arguments[0].partition("=")[0]
    assert capsys.readouterr() == ("", f"lazulite serve: {flag} has no effect: {said}\n")


def test_the_help_of_serve_has_the_common_flags_on_its_first_screen_and_the_others_in_groups(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    lines = capsys.readouterr().out.splitlines()
    screen = "\n".join(lines[:24])
    for flag in ("--location", "--in-memory", "--services", "--table-port", "--blob-host", "--cert", "--silent"):
        assert f" {flag}" in screen, flag
    groups = [line for line in lines if re.fullmatch(r"[A-Za-z].*:", line)]
    assert groups[:2] == ["common flags:", "PostgreSQL:"]
    assert {"host names and access:", "static websites:", "bearer tokens:", "limits:", "flags of Azurite:"} <= {*groups}
    assert not any("tablePort" in line for line in lines if line.startswith("  -")), "each flag is named once"


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr().out
    for command in ("serve", "account", "sas", "connection-string", "examples:"):
        assert command in output


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"lazulite {__version__}\n"


@pytest.mark.parametrize("command", ["serve", "account", "sas", "connection-string"])
def test_each_command_has_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: lazulite {command}" in capsys.readouterr().out


def test_help_states_the_default_limits() -> None:
    defaults = {each.name: each.default for each in fields(Limits)}
    for field, _, text in LIMIT_FLAGS.values():
        assert text.endswith(f"({defaults[field]})")
    page_seconds = next(each.default for each in fields(Settings) if each.name == "page_seconds")
    assert parse("serve").page_seconds == page_seconds


def test_help_imports_no_more_than_it_needs() -> None:
    script = "import sys; from lazulite.cli import main; main([]); print(sorted(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(ast.literal_eval(output.stdout.splitlines()[-1]))
    ours = {module for module in modules if module.split(".")[0] == "lazulite"}
    light = {
        "address_flags",
        "advise_flags",
        "argument_parser",
        "argv_secrets",
        "errors",
        "flag_types",
        "help_texts",
        "parser",
        "sas_flags",
        "serve_flags",
        "stress_flags",
        "transfer_flags",
    }
    of_databases = {"engine", "engine.postgres", "engine.postgres.dsn", "engine.postgres.settings"}
    of_databases |= {"settings", "settings.addresses", "settings.database", "settings.extras"}
    of_accounts = {"auth", "auth.accounts", "auth.accounts.switches"}
    of_plans = {"stress", "stress.plan"}
    light = {"cli", *(f"cli.{name}" for name in light)}
    assert ours == {"lazulite", *(f"lazulite.{name}" for name in light | of_databases | of_accounts | of_plans)}
    assert not modules & {"asyncio", "httptools", "lxml", "rocksdict", "uvloop"}


@pytest.mark.parametrize(
    ("failure", "code", "line"),
    [
        (KeyboardInterrupt(), 130, ""),
        (OSError(28, "No space left on device"), 1, "lazulite: [Errno 28] No space left on device\n"),
        (CommandError("two\nlines"), 1, "lazulite: two lines\n"),
        (CommandError("wrong", 2), 2, "lazulite: wrong\n"),
    ],
)
def test_errors_of_commands_are_one_line(
    failure: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(_: Namespace, __: object) -> int:
        raise failure

    monkeypatch.setattr(account, "run", run)
    assert main(["account", "list"]) == code
    assert capsys.readouterr().err == line


def test_serve_says_that_it_lacks_address_space(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reject(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", reject)
    assert main(["serve", "--in-memory"]) == 1
    expected = "lazulite: the process needs 1024 MiB of address space, and cannot have it; see ulimit -v\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libffi.so.8: failed to map segment from shared object"),
        RuntimeError("IO error: Cannot allocate memory"),
    ],
)
def test_a_lack_of_memory_is_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(account, "run", fail)
    assert main(["account", "list"]) == 1
    assert capsys.readouterr().err == "lazulite: there is not enough memory; see ulimit -v\n"


def test_other_failures_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise RuntimeError("a mistake of the program")

    monkeypatch.setattr(account, "run", fail)
    with pytest.raises(RuntimeError, match="a mistake"):
        main(["account", "list"])
