"""Settings of the connection to the database."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Settings of a `PostgresEngine`."""

    dsn: str = field(repr=False)
    """A URL as libpq knows it: `postgresql://user@host1:port,host2/database?sslmode=verify-full`."""
    password: str | None = field(default=None, repr=False)
    """None: that of the URL, of PGPASSWORD or of a passfile."""
    connections_max: int = 16
    """The most open connections."""
    connect_seconds: float = 5.0
    """Time limit of a connection attempt to one host."""
    statement_seconds: float = 20.0
    """Time limit of a statement, here and in the database, and of the wait for a connection."""
    node_seconds: float = 4.0
    """Time limit of a statement on one node of a Citus cluster, with the wait for a connection."""
    scripts: bool | None = None
    """Whether changes are sent as scripts, see `sql_scripts`; None: if the database needs it."""
    keys_first: bool | None = None
    """Whether a page over partitions is read in two statements, see `scan`; None: if the database needs it."""
    peers: Path | None = None
    """The directory by which processes of this machine find one another, see `remote.peers`; None: they do not."""
    holds_snapshots: bool = False
    """Whether a snapshot may be idle for any time."""
    drop_poll_seconds: float = 1.0
    """How often the list of dropped spaces is read, and emptied."""

    @property
    def dsns(self) -> list[str]:
        """One URL per host, in their order."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        return [urlunsplit(parts._replace(netloc=user + at + host)) for host in hosts.split(",")]

    @property
    def name(self) -> str:
        """The database's name in messages: the URL without its password and its options."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        return urlunsplit((parts.scheme, user.partition(":")[0] + at + hosts, parts.path, "", ""))
