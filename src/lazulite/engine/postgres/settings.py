"""How to reach the database, and how much of it to take."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Settings of a `PostgresEngine`."""

    dsn: str = field(repr=False)
    """A URL as libpq knows it: `postgresql://user@host1:port,host2/database?sslmode=verify-full`."""
    password: str | None = field(default=None, repr=False)
    """None: that of the URL, of PGPASSWORD or of a passfile."""
    connections_max: int = 16
    """How many connections are open at most."""
    connect_seconds: float = 5.0
    """How long a host may take to make a connection."""
    statement_seconds: float = 20.0
    """How long a statement may take, here and in the database, and how long a connection for it is waited for."""
    scripts: bool | None = None
    """Whether changes are sent as scripts, see `sql_scripts`; None: where the database needs it."""
    drop_poll_seconds: float = 1.0
    """How often it is asked which spaces others have dropped, and what is left of them."""

    @property
    def dsns(self) -> list[str]:
        """A URL for each of the hosts, in their order."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        return [urlunsplit(parts._replace(netloc=user + at + host)) for host in hosts.split(",")]

    @property
    def name(self) -> str:
        """What the database is called in messages: the URL without its password and its options."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        return urlunsplit((parts.scheme, user.partition(":")[0] + at + hosts, parts.path, "", ""))
