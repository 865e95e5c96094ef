"""The descriptions and examples of `--help`, around the flags."""

DESCRIPTION = """\
Lazulite is a self-hosted server of Azure Table, Queue and Blob storage. The SDKs
connect to it by connection string. A write is acknowledged after it is synced to
disk.
"""

EXAMPLES = """\
examples:
  lazulite serve                                   serve ./data: tables on 127.0.0.1:10002,
                                                   queues on 10001, blobs on 10000
  lazulite serve -l /srv/tables --table-port 0 --queue-port 0 --blob-port 0
                                                   other directory, any free ports
  lazulite serve --in-memory --silent              no files, no request log
  lazulite serve --engine postgresql://me@db/tables
                                                   store in a database, which any
                                                   number of processes can share
  lazulite account add orders                      create an account with new keys
  lazulite account rotate-key orders --key 1       replace key 1; key 2 stays valid
  lazulite connection-string --account orders      print a client's connection string
  lazulite account remove orders                   remove an account without data
  lazulite table ls                                print the tables of a running server
  lazulite sas table Orders --account orders --permissions r --expiry 2h --url
                                                   print a URL that can read one table

If you configure no account, the server accepts devstoreaccount1 with its public
key, on loopback addresses only. "lazulite COMMAND --help" describes a command.
"""

SERVE_EXAMPLES = """\
The server prints its address to stdout and one line for each request to stderr.
GET /health returns 200 while the store accepts writes. SIGTERM stops the server
after it has finished the running requests. SIGHUP reloads the certificate.

environment:
  LAZULITE_ACCOUNTS          accounts, name:key1[:key2];… (or AZURITE_ACCOUNTS),
                             in addition to those of "lazulite account add"
  LAZULITE_ENGINE            database URL, as --engine; flags override it
  LAZULITE_ENGINE_PASSWORD   its password, if no file and no URL holds it

examples:
  lazulite serve --table-host 0.0.0.0 --queue-host 0.0.0.0 --blob-host 0.0.0.0
                                                   reachable from other machines
  lazulite serve --services table                  tables only
  lazulite serve --queue-port 10002                tables and queues on port 10002, by host
  lazulite serve --cert cert.pem --key key.pem     HTTPS only
  lazulite serve --cert cert.pem --key key.pem --https-port 10443
                                                   HTTP and HTTPS
  lazulite serve --metrics-port 9464               Prometheus metrics
  lazulite serve --host-suffix table.example.org   account "orders" is also reached as
                                                   orders.table.example.org
  lazulite serve --table-host 0.0.0.0 --allow-development-key --allowed-host lazulite
                                                   reachable from other containers
                                                   under the name "lazulite"
  LAZULITE_ACCOUNTS="orders:$KEY1:$KEY2" lazulite serve
"""

APPLY_EXAMPLES = """\
The file has tables with rows, queues with messages, containers with blobs, access
policies, settings of services, and accounts, whose keys are in files or variables.
Nothing is deleted. The same file applied again changes nothing.

examples:
  lazulite apply state.toml                        the server of ./data
  lazulite apply state.toml --to file:shop.conn    another server, or the cloud
  lazulite serve --in-memory --seed state.toml     a server that begins with it
"""

PULL_EXAMPLES = """\
Afterwards the two sides are compared, and what does not travel is listed. A command
that was interrupted goes on where it was, if it is run again.

examples:
  lazulite pull --from file:azure.conn             leave the cloud
  lazulite pull --from UseDevelopmentStorage=true --location new --blob-port 11000 …
                                                   from another server of this machine
  lazulite push --to env:TEST_STORAGE              fill a test account
"""

SAS_EXAMPLES = """\
A time is a date (2030-01-31), a date and time (2030-01-31T12:00Z), or a duration
from now: 90s, 30m, 2h, 7d, 4w.

examples:
  lazulite sas account --permissions rl --expiry 7d
  lazulite sas table Orders --permissions raud --expiry 2030-01-31
  lazulite sas table Orders --permissions r --expiry 1h --spk 2024 --epk 2025
  lazulite sas table Orders --policy readers --url
  lazulite sas queue jobs --permissions ap --expiry 7d
  lazulite sas container photos --permissions rl --expiry 7d --url
  lazulite sas blob photos/2026/a.jpg --permissions r --expiry 1h --url
"""

TABLE_EXAMPLES = """\
The server must run. "get" and "query" print what "put" stores.

examples:
  lazulite table create Orders
  lazulite table put Orders '{"PartitionKey": "2026-11", "RowKey": "0001", "Total": 12.5}'
  lazulite table get Orders 2026-11 0001
  lazulite table query Orders --filter "PartitionKey eq '2026-11' and Total gt 10" --top 5
  lazulite table query Orders | lazulite table put Copies -
  lazulite table rm Orders 2026-11 0001
  lazulite table rm Orders --yes
"""

QUEUE_EXAMPLES = """\
The server must run. The age is that of the message that a consumer would get next.

examples:
  lazulite queue create jobs
  lazulite queue put jobs "2026-11/0001"
  lazulite queue stats
  lazulite queue get jobs --count 5
  lazulite queue clear jobs --account orders --queue-port 10001
  lazulite queue rm jobs --yes
"""

BLOB_EXAMPLES = """\
The server must run. Exit codes: 0 done, 1 rejected or not reached, 2 wrong flags.

examples:
  lazulite blob put report.pdf docs/2026/report.pdf --create-container
  tar c data | lazulite blob put - backups/data.tar
  lazulite blob ls docs --prefix 2026/ --delimiter /
  lazulite blob get docs/2026/report.pdf report.pdf
  lazulite blob get backups/data.tar | tar t
  lazulite blob mv docs/2026/report.pdf docs/2026/final.pdf
  lazulite blob rm docs/2026/report.pdf
  lazulite blob rm docs --prefix 2025/ --yes
"""

COMPLETION_EXAMPLES = """\
examples:
  eval "$(lazulite completion bash)"               in ~/.bashrc
  eval "$(lazulite completion zsh)"                in ~/.zshrc, behind compinit
  lazulite completion fish | source                in ~/.config/fish/config.fish
"""

COPY_EXAMPLES = """\
A store is a location (a directory) or a database URL:
postgresql://user@host1,host2/database. Passwords are read from the variables
LAZULITE_FROM_PASSWORD and LAZULITE_TO_PASSWORD, or from the files named by
LAZULITE_FROM_PASSWORD_FILE and LAZULITE_TO_PASSWORD_FILE. To resume an
interrupted copy, run the same command again. "lazulite serve" rejects the target
until the copy is complete.

examples:
  lazulite copy --from data --to /srv/tables
  lazulite copy --from data --to postgresql://lazulite@db1,db2/tables
  lazulite copy --from data --to /srv/tables --verify-only
"""

EXPORT_EXAMPLES = """\
The table is one of a running server, or of the account that a connection string
names, here or in the cloud.

examples:
  lazulite export Orders -o orders.csv
  lazulite export Orders -o orders.parquet --filter "Total gt 10" --select Total,City
  lazulite export Orders --start-partition 2026-01 --end-partition 2026-11 | gzip > o.gz
  lazulite export Orders -o orders.jsonl --from file:account.txt
"""

IMPORT_EXAMPLES = """\
An interrupted import goes on when the same command is run again. Exit codes: 0 all
rows are stored, 1 some are not, or no server responds, 2 wrong flags.

examples:
  lazulite import Orders orders.csv --dry-run
  lazulite import Orders orders.csv --mode replace
  lazulite import People people.csv --type Zip=String --row-keys number
  lazulite import Orders orders.jsonl --to env:TARGET
"""

HEAT_EXAMPLES = """\
examples:
  lazulite serve --meter
  lazulite heat Orders --last 1h -o heat.html
  lazulite heat Orders --account orders --findings
"""

TARGETS_EXAMPLES = """\
examples:
  lazulite serve
  lazulite targets set study-2010
  lazulite targets
"""

PARTITIONS_EXAMPLES = """\
examples:
  lazulite serve --targets current
  lazulite partitions Orders
  lazulite partitions Orders --account orders --json
"""

EXPIRY_EXAMPLES = """\
An entity that has expired is gone for reads and writes. Its row is removed later.

examples:
  lazulite expiry set Sessions --after 30d
  lazulite expiry set Offers --on Until
  lazulite expiry list
"""

INDEX_EXAMPLES = """\
Queries give the same rows in the same order, only faster. A build goes on when the
command is interrupted.

examples:
  lazulite index create Employees by_mail --on Email
  lazulite index create Orders by_city --on City --scope table
  lazulite index explain Orders "City eq 'Oslo' and Total gt 5"
"""

REQUESTS_EXAMPLES = """\
The first look begins to record, unless the server has --record-requests. What is
recorded is kept until 15 minutes after the last look. No body, key or signature is.

examples:
  lazulite requests --follow --status 4xx
  lazulite requests --service table --text QueryEntities
  lazulite requests --status refused --json | jq -r .mistake
  lazulite requests 63a2c0d1-0002-0019-7292-21dbc3000000
"""

LOGS_EXAMPLES = """\
The blobs of $logs are read over HTTP. Exit codes: 0 done, 1 rejected, not reached
or a line could not be read, 2 wrong flags.

examples:
  lazulite logs --since 6h --failed
  lazulite logs --json | jq -c 'select(.server_ms > 100)'
  az storage account show-connection-string -n NAME -o tsv |
    lazulite logs --connection-string-file -
"""

FAULTS_EXAMPLES = """\
examples:
  lazulite serve --faults faults.toml
  lazulite faults add ambiguous-writes
  lazulite faults list
  lazulite faults clear
"""

STRESS_EXAMPLES = """\
A table, queue or container with a name of its own is made and removed again. Exit
codes: 0 pass, 1 fail, 3 no verdict, 2 wrong flags.

examples:
  lazulite stress --clients 1,4,16
  lazulite stress --workload batch --batch 20 --rate 50 --margin 25%
  lazulite stress --workload get --partitions 16 --processes 2 --svg get.svg
  lazulite stress --connection-string file:cloud.txt --rate 1500 --seconds 300
  lazulite stress --clean
"""
