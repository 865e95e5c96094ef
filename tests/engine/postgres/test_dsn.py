"""The URL of a database: what is understood is what asyncpg understands, and no text shows a password."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.postgres.dsn import DatabaseUrl, read_url
from lazulite.engine.postgres.settings import PostgresSettings

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "bare", "password"),
    [
        ("postgresql://user:s3cret@host/db", "postgresql://user@host/db", SECRET),
        ("postgres://user:s3cret@host1:5432,host2:5433/db?a=b", "postgres://user@host1:5432,host2:5433/db?a=b", SECRET),
        ("postgresql://user:p%40ss%2Fw%3A@host/db", "postgresql://user@host/db", "p@ss/w:"),
        ("postgresql://us%40er:s3cret@[::1]:5432/db", "postgresql://us%40er@[::1]:5432/db", SECRET),
        ("postgresql://:s3cret@host", "postgresql://@host", SECRET),
        ("postgresql:///db?user=u&password=s3cret&sslmode=require", "postgresql:///db?user=u&sslmode=require", SECRET),
        ("postgresql:///db?host=/run/x&password=s3cret", "postgresql:///db?host=%2Frun%2Fx", SECRET),
        ("postgresql://user:s3cret@/db?host=/run/x", "postgresql://user@/db?host=/run/x", SECRET),
        ("postgresql://user@host/db?options=-c%20a=b", "postgresql://user@host/db?options=-c%20a=b", None),
        ("postgresql://user:@host/db", "postgresql://user@host/db", None),
        ("postgresql://host", "postgresql://host", None),
    ],
)
def test_a_url_is_taken_apart(text: str, bare: str, password: str | None) -> None:
    url = read_url(text)
    assert (url.text.replace("%2F", "/"), url.password) == (bare.replace("%2F", "/"), password)
    assert SECRET not in repr(url)
    assert read_url(url.text) == DatabaseUrl(url.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "data",
        "mysql://user:s3cret@host/db",
        "postgresql://user:s3@cret@host/db",
        "postgresql://user:s3/cret@host/db",
        "postgresql://user:3/s3cret@host/db",
        "postgresql://user:s3?cret@host/db",
        "postgresql://user:3?s3cret=@host/db",
        "postgresql://user:s3#cret@host/db",
        "postgresql://user:[s3cret@host/db",
        "postgresql://user:s3cret℀@host/db",
        "postgresql://user:s3cret%00@host/db",
        "postgresql://host:s3cret/db",
        "postgresql://host:70000/db",
        "postgresql://[::1/db",
        "postgresql://host/db?s3cret",
    ],
)
def test_text_that_is_no_url_is_rejected_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="is no URL of PostgreSQL") as caught:
        read_url(text)
    assert "s3" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_password_of_a_key_is_rejected() -> None:
    with pytest.raises(ValueError, match="sslpassword") as caught:
        read_url("postgresql://host/db?sslkey=k&sslpassword=s3cret")
    assert SECRET not in str(caught.value)


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_password_survives_its_spelling(password: str) -> None:
    url = read_url(f"postgresql://user:{quote(password, safe='')}@host/db")
    assert (url.text, url.password) == ("postgresql://user@host/db", password)


@given(st.text(alphabet="postgresql:/@?#&=%[]a1,.", max_size=40))
def test_any_text_is_read_or_rejected(text: str) -> None:
    for each in (text, f"postgresql://{text}"):
        try:
            url = read_url(each)
        except ValueError as error:
            assert str(error).startswith("is no URL of PostgreSQL, postgresql:…; ")
        else:
            assert read_url(url.text).password is None


def test_settings_show_neither() -> None:
    settings = PostgresSettings(dsn="postgresql://user@host/db?sslmode=require", password=SECRET)
    assert settings.name == "postgresql://user@host/db"
    assert SECRET not in repr(settings)
