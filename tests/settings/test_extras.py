"""Without an extra: everything else works, and what needs it is rejected in one line that names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lazulite.settings.config import DEVELOPMENT_OFF
from lazulite.settings.extras import EXTRAS, require_extra
from tests.server_process import FREE_PORTS

HIDING = "import sys; sys.modules.update(dict.fromkeys({modules!r})); from lazulite.cli import main; sys.exit(main())"
MODULES = [module for modules in EXTRAS.values() for module in modules]
URL = "postgresql://127.0.0.1:1/none"


def without(modules: list[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and the errors of a command in a process where modules cannot be imported."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LAZULITE_", "OTEL_"))}
    command = [sys.executable, "-c", HIDING.format(modules=modules), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("png", ["heat", "Orders", "-o", "heat.png"]),
        ("parquet", ["export", "Orders", "-o", "orders.parquet"]),
        ("postgres", ["serve", "--engine", URL]),
        ("postgres", ["account", "list", "--engine", URL]),
        ("postgres", ["upgrade", "--engine", URL]),
        ("postgres", ["copy", "--from", URL, "--to", "elsewhere"]),
        (
            "metrics",
            [
                "serve",
                "--in-memory",
                *FREE_PORTS,
                "--metrics-port",
                "0",
            ],
        ),
        (
            "oidc",
            [
                "serve",
                "--in-memory",
                *FREE_PORTS,
                "--oidc-issuer",
                "https://issuer.example",
            ],
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_a_missing_extra_is_named_in_one_line(extra: str, arguments: list[str]) -> None:
    code, errors = without(MODULES, *arguments)
    assert code in {1, 2}
    assert len(errors.splitlines()) == 1
    assert errors.startswith("lazulite: ")
    assert f" needs the extra {extra}: in a checkout of Lazulite, run pip install '.[{extra}]'" in errors


def test_each_module_of_an_extra_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra, modules in EXTRAS.items():
        require_extra(extra, "it")
        for module in modules:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, module, None)
                with pytest.raises(ValueError, match=f"it needs the extra {extra}: "):
                    require_extra(extra, "it")


def test_commands_of_a_location_need_no_extra(tmp_path: Path) -> None:
    place = str(tmp_path / "data")
    assert without(MODULES, "account", "add", "contoso", "--location", place) == (0, f"lazulite: {DEVELOPMENT_OFF}\n")
    assert without(MODULES, "account", "list", "--location", place) == (0, "")
