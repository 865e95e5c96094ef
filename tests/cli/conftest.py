"""What every test of a command finds: no store and no accounts but its own."""

from pathlib import Path

import pytest

from lazulite.settings.config import ACCOUNT_VARIABLES
from lazulite.settings.database import DATABASE_VARIABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", name="empty_directory")
def _empty_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True)
def _no_store_of_the_checkout(empty_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty directory, as the default location is `./data`: a checkout has one after the tutorial."""
    monkeypatch.chdir(empty_directory)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # Programs of `tests` are run in processes.
    for variable in (*ACCOUNT_VARIABLES, *DATABASE_VARIABLES):
        monkeypatch.delenv(variable, raising=False)
