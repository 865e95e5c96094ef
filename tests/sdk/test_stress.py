"""`lazulite stress` against the emulator Azurite, which is another endpoint that people have."""

import pytest

from lazulite.cli import main

from .test_patterns_pages import connection_string

__all__ = ["connection_string"]
QUICK = ("--seconds", "0.5", "--warm-seconds", "0.5", "--silent")


@pytest.mark.parametrize("workload", ["batch", "queue", "blob"])
def test_azurite_is_put_under_load(connection_string: str, workload: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--workload", workload, "--batch", "10", "--entities", "20", "--rate", "20")
    code = main(["stress", "--connection-string", connection_string, *flags, *QUICK])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "failed" not in printed.out
    assert float(printed.out.splitlines()[1].split()[2]) > 0
    assert code in (0, 1, 3), "a busy machine may not reach the rate"
    assert main(["stress", "--connection-string", connection_string, "--clean", "--workload", workload]) == 0
    assert "0 left over" in capsys.readouterr().err
