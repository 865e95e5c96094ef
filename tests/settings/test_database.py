"""Which database, and its password: what wins, what is rejected, and that nothing shows it."""

import pickle
from pathlib import Path

import pytest

from lazulite.cli.parser import build_parser
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.settings.config import ConfigError, Settings, settings_from
from lazulite.settings.database import DATABASE_VARIABLES, PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE, URL_VARIABLE

URL, OTHER = "postgresql://user@host/db", "postgresql://user@other/db"
SECRET = "s3cret"
WITH_PASSWORD = f"postgresql://user:{SECRET}@host/db"


def settings(*arguments: str, **environ: str) -> Settings:
    return settings_from(build_parser().parse_args(["serve", *arguments]), environ)


def database(*arguments: str, **environ: str) -> PostgresSettings:
    found = settings(*arguments, **environ).database
    assert found is not None
    return found


def test_without_any_of_it_there_is_no_database() -> None:
    assert settings().database is None
    assert settings(LAZULITE_ENGINE=" ").location == Path("data")


def test_a_database_takes_the_place_of_a_location() -> None:
    found = settings("--engine", URL, "--engine-connections", "3")
    assert found.location is None
    assert found.database == PostgresSettings(dsn=URL, connections_max=3)
    assert settings(LAZULITE_ENGINE=URL) == settings("--engine", URL)


def test_the_command_line_wins() -> None:
    assert database("--engine", URL, LAZULITE_ENGINE=OTHER).dsn == URL
    for place in (["--location", "data"], ["-l", "x"], ["--in-memory"]):
        assert settings(*place, LAZULITE_ENGINE=URL).database is None


@pytest.mark.parametrize(
    ("arguments", "environ", "why"),
    [
        (["--engine", URL, "--location", "data"], {}, "cannot be combined with --location or --in-memory"),
        (["-l", "x", "--engine", URL], {}, "cannot be combined with --location or --in-memory"),
        (["--engine", URL, "--in-memory"], {}, "cannot be combined with --location or --in-memory"),
        (["--engine-connections", "2"], {}, "need --engine"),
        (["--engine-password-file", "x"], {}, "need --engine"),
        ([], {URL_VARIABLE: f"postgresql://user:{SECRET}/@host/db"}, f"{URL_VARIABLE} is no URL of PostgreSQL"),
        (["--engine", URL, "--engine-password-file", "missing"], {}, "missing: No such file"),
        ([], {URL_VARIABLE: URL, PASSWORD_FILE_VARIABLE: "missing"}, "missing: No such file"),
    ],
)
def test_incompatible_flags_are_rejected(arguments: list[str], environ: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        settings(*arguments, **environ)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sources_of_a_password_in_order(tmp_path: Path) -> None:
    for name in ("flag", "variable"):
        (tmp_path / name).write_text(f"by {name}'s file\n")
    flag = ("--engine-password-file", str(tmp_path / "flag"))
    by_file = {PASSWORD_FILE_VARIABLE: str(tmp_path / "variable")}
    by_variable = {PASSWORD_VARIABLE: "by variable"}
    assert database("--engine", URL).password is None
    assert database("--engine", URL, **by_file).password == "by variable's file"
    assert database("--engine", URL, **by_file, **by_variable).password == "by variable"
    assert database("--engine", WITH_PASSWORD, **by_file, **by_variable).password == SECRET
    assert database(LAZULITE_ENGINE=WITH_PASSWORD, **by_variable).password == SECRET
    assert database(*flag, LAZULITE_ENGINE=WITH_PASSWORD, **by_variable).password == "by flag's file"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff", b"two\nlines\n", b"\0"])
def test_a_file_without_a_password_is_rejected(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="does not contain a password") as caught:
        settings("--engine", URL, "--engine-password-file", str(file))
    assert "lines" not in str(caught.value)


def test_no_password_in_a_repr_and_yet_it_reaches_workers() -> None:
    args = build_parser().parse_args(["serve", "--engine", WITH_PASSWORD])
    found = settings_from(args, {})
    for shown in (repr(args), repr(found), str(found.database)):
        assert SECRET not in shown
    again = pickle.loads(pickle.dumps(found))
    assert again.database.password == SECRET


def test_the_variables_have_one_beginning() -> None:
    assert all(name.startswith("LAZULITE_ENGINE") for name in DATABASE_VARIABLES)
