"""A password does not stay in the command line, however the command was started."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from lazulite.cli.argv_secrets import split_passwords
from tests.server_process import FREE_PORTS, SECONDS_MAX, environment

from .test_serve import COMMAND, lazulite

SECRET = "s3cret:@ ü"
URL = f"postgresql://user:{quote(SECRET)}@127.0.0.1/db"
BARE = "postgresql://user@127.0.0.1/db"
VARIABLE = "LAZULITE_ENGINE_PASSWORD"
SCRIPT = "import sys\nfrom lazulite.cli import main\nsys.exit(main())\n"
"""What pip makes of the entry point."""


@pytest.mark.parametrize(
    ("arguments", "bare", "passwords"),
    [
        ([], [], {}),
        (["serve", "-l", "x"], ["serve", "-l", "x"], {}),
        (["serve", "--engine", BARE], ["serve", "--engine", BARE], {}),
        (["serve", "--engine", URL, "-s"], ["serve", "--engine", BARE, "-s"], {VARIABLE: SECRET}),
        (["serve", f"--engine={URL}"], ["serve", f"--engine={BARE}"], {VARIABLE: SECRET}),
        (["serve", "--engine"], ["serve", "--engine"], {}),
        (["serve", "--engine", "nonsense"], ["serve", "--engine", "nonsense"], {}),
        (
            ["copy", "--from", URL, "--to=postgres://a:b@c"],
            ["copy", "--from", BARE, "--to=postgres://a@c"],
            {"LAZULITE_FROM_PASSWORD": SECRET, "LAZULITE_TO_PASSWORD": "b"},
        ),
        (
            ["pull", "--from", "AccountName=a;AccountKey=c2VjcmV0"],
            ["pull", "--from", "env:LAZULITE_FROM_CONNECTION"],
            {"LAZULITE_FROM_CONNECTION": "AccountName=a;AccountKey=c2VjcmV0"},
        ),
        (
            ["apply", "x", "--to", "UseDevelopmentStorage=true"],
            ["apply", "x", "--to", "UseDevelopmentStorage=true"],
            {},
        ),
        (["serve", "--engine", URL, "--engine", BARE], ["serve", "--engine", BARE, "--engine", BARE], {}),
    ],
)
def test_passwords_are_split_off(arguments: list[str], bare: list[str], passwords: dict[str, str]) -> None:
    assert split_passwords(arguments) == (bare, passwords)


@pytest.mark.parametrize("command", [COMMAND, [sys.executable, "-X", "utf8", "-m", "lazulite"], [sys.executable]])
def test_password_is_gone_from_the_process_list(command: list[str], tmp_path: Path) -> None:
    """The process is looked at when it connects to what would be its database, and never answers."""
    if command == [sys.executable]:
        script = tmp_path / "lazulite"
        script.write_text(SCRIPT)
        command = [*command, str(script)]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS_MAX)
        port = silent.getsockname()[1]
        url = URL.replace("127.0.0.1", f"127.0.0.1:{port}")
        arguments = ["serve", *FREE_PORTS, "--engine", url]
        pipe = subprocess.PIPE
        with subprocess.Popen([*command, *arguments], env=environment(), stdout=pipe, stderr=pipe) as process:
            try:
                connection, _ = silent.accept()
                with connection:
                    seen = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
                    variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            finally:
                process.send_signal(signal.SIGKILL)
                out, err = process.communicate()
    shown = [*arguments[:-1], url.replace(f":{quote(SECRET)}@", "@"), ""]
    assert [word.decode() for word in seen[-len(shown) :]] == shown
    assert not any(b"s3cret" in word for word in seen)
    assert f"{VARIABLE}={SECRET}".encode() in variables
    assert b"s3cret" not in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--engin", URL],
        ["serve", URL],
        ["serve", "--engine", URL, "--nope"],
        ["serve", "--engine", "postgresql://user:s3cret@x@host/db"],
        ["serve", "--engine", "mysql://user:s3cret@host/db"],
        ["serve", "--engine", URL, "--in-memory"],
        ["backup", "x", "--engine", URL],
        ["check", "--engine", URL],
        ["restore", "x", "--engine", URL],
    ],
)
def test_errors_never_contain_the_password(arguments: list[str]) -> None:
    done = lazulite(*arguments)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stderr
