"""What the help of the command line says around its flags."""

DESCRIPTION = """\
Lazulite is Azure Table storage to run yourself: any Azure Tables SDK works
against it by connection string, and what it acknowledged stays.
"""

EXAMPLES = """\
examples:
  lazulite serve                                   serve ./data on 127.0.0.1:10002
  lazulite serve -l /srv/tables --table-port 0     another place, any free port
  lazulite serve --in-memory --silent              nothing on disk, no request log
  lazulite serve --engine postgresql://me@db/tables
                                                   a database, for any number of
                                                   such processes
  lazulite account add orders                      an account with keys of its own
  lazulite account rotate-key orders --key 1       key 2 goes on working meanwhile
  lazulite connection-string --account orders      what to paste into a client
  lazulite sas table Orders --account orders --permissions r --expiry 2h --url
                                                   a link that reads one table

Without accounts of your own, the account is devstoreaccount1 with the key that
everybody knows, on loopback addresses only. "lazulite COMMAND --help" says more.
"""

SERVE_EXAMPLES = """\
The accounts are those of the environment variable LAZULITE_ACCOUNTS (or
AZURITE_ACCOUNTS), name:key1[:key2];…, and those of "lazulite account add"; with
none, devstoreaccount1. The password of a database is that of a file, of its URL,
or of LAZULITE_ENGINE_PASSWORD; LAZULITE_ENGINE may say what --engine says. The
service tells on stdout where it listens, writes one line a request to stderr, and
answers GET /health while it can write. SIGTERM lets it finish what is in flight,
SIGHUP reads the certificate again.

examples:
  lazulite serve --table-host 0.0.0.0 --location /srv/tables
  lazulite serve --cert cert.pem --key key.pem     HTTPS, and nothing else
  lazulite serve --cert cert.pem --key key.pem --https-port 10443
                                                   HTTP and HTTPS
  lazulite serve --metrics-port 9464               GET /metrics there, for Prometheus
  lazulite serve --host-suffix table.example.org   orders.table.example.org is orders
  lazulite serve --table-host 0.0.0.0 --allow-development-key --allowed-host lazulite
                                                   for other containers, which call
                                                   this one lazulite
  LAZULITE_ACCOUNTS="orders:$KEY1:$KEY2" lazulite serve
"""

SAS_EXAMPLES = """\
Times are 2030-01-31, 2030-01-31T12:00Z, or a while from now: 90s, 30m, 2h, 7d, 4w.

examples:
  lazulite sas account --permissions rl --expiry 7d
  lazulite sas table Orders --permissions raud --expiry 2030-01-31
  lazulite sas table Orders --permissions r --expiry 1h --spk 2024 --epk 2025
  lazulite sas table Orders --policy readers --url
"""

COPY_EXAMPLES = """\
A store is a location, or a database: postgresql://user@host1,host2/database.
Passwords are in LAZULITE_FROM_PASSWORD and LAZULITE_TO_PASSWORD, or in files
that LAZULITE_FROM_PASSWORD_FILE and LAZULITE_TO_PASSWORD_FILE name. What was
broken off goes on where it was when the same command is given again; until it
has ended well, "lazulite serve" refuses the target.

examples:
  lazulite copy --from data --to /srv/tables
  lazulite copy --from data --to postgresql://lazulite@db1,db2/tables
  lazulite copy --from data --to /srv/tables --verify-only
"""
