"""Without what macOS and Windows lack, a server answers: in memory, and on a location.

The tests hide modules, functions and constants from a process of Linux. No other platform is run.
"""

import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN_MODULES = ("uvloop", "fcntl", "resource", "termios", "pwd", "grp", "tty", "pty")
HIDDEN_NAMES = {
    "os": (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "fchmod", "fork", "getuid", "geteuid", "killpg", "memfd_create"),
        *("pread", "pwrite", "sched_getaffinity", "setsid", "statvfs", "uname", "MFD_CLOEXEC", "fdatasync"),
    ),
    "socket": ("AF_UNIX", "SO_REUSEPORT", "TCP_INFO", "TCP_USER_TIMEOUT"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC", "clock_gettime", "clock_gettime_ns"),
    "signal": ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD"),
    "asyncio": ("start_unix_server", "open_unix_connection"),
}
"""What is hidden once asyncio, which is of the platform, has been imported."""

PROGRAM = f"""
import asyncio, http.client, os, signal, socket, sys, threading

import {", ".join(sorted(HIDDEN_NAMES))}

socketpair, AF_UNIX = socket.socketpair, socket.AF_UNIX
socket.socketpair = lambda: socketpair(AF_UNIX)  # asyncio's own; on Windows it is made of loopback connections.
for name, names in {HIDDEN_NAMES!r}.items():
    for each in names:
        vars(sys.modules[name]).pop(each, None)
sys.modules.update(dict.fromkeys({HIDDEN_MODULES!r}))

def reject(*_):
    raise NotImplementedError

asyncio.SelectorEventLoop.add_signal_handler = reject
"""

REQUEST = """
from lazulite.cli import main

class Output:
    def writelines(self, lines):
        for line in lines:
            if "http://" in line and "listens on" in line:
                port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
                threading.Thread(target=ask, args=[port]).start()
    def write(self, text):
        return len(text)
    def flush(self):
        pass

def ask(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/health")
        answers.append(connection.getresponse().status)
        connection.close()
    finally:
        signal.raise_signal(signal.SIGTERM)

answers = []
reported, sys.stdout = sys.stdout, Output()
code = main(["serve", "--table-port", "0", "--queue-port", "0", "--blob-port", "0", *sys.argv[1:]])
reported.write(f"{code} {answers}")
"""


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM + REQUEST, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("place", ["--in-memory", "--location"])
def test_a_server_answers_without_what_other_platforms_lack(place: str, tmp_path: Path) -> None:
    arguments = [place] if place == "--in-memory" else [place, str(tmp_path / "data")]
    done = serve(*arguments)
    assert (done.returncode, done.stdout) == (0, "0 [200]"), done.stderr


def test_the_modules_are_hidden() -> None:
    """The test above shows something: what it hides cannot be had."""
    for module in HIDDEN_MODULES:
        done = subprocess.run([sys.executable, "-c", f"{PROGRAM}\nimport {module}"], capture_output=True, check=False)
        assert b"ModuleNotFoundError" in done.stderr
    absent = "; ".join(
        f"assert not hasattr({name}, {each!r})" for name, names in HIDDEN_NAMES.items() for each in names
    )
    subprocess.run([sys.executable, "-c", f"{PROGRAM}\n{absent}"], check=True)
