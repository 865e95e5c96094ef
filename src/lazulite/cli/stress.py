"""`lazulite stress`: put an endpoint under load, and tell whether it passes by its targets.

Invariants: the sample is removed however the run ends, but for a kill that nothing can catch, after which the next run
removes it; no key is printed or written; an endpoint off this machine gets no request without consent.
"""

import asyncio
import json
import signal
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

from lazulite.auth.sas import AccountSas, format_sas_date, sign_account_sas
from lazulite.cli.account_stores import choose_account
from lazulite.cli.argv_secrets import CONNECTION_STRING_VARIABLE
from lazulite.cli.connection_string import (
    NamedAccount,
    connection_text,
    endpoints_of,
    reachable,
    read_connection_string,
)
from lazulite.cli.errors import CommandError
from lazulite.cli.logs import read_file
from lazulite.cli.progress_line import ProgressLine
from lazulite.cli.running_addresses import endpoint_hint, served, with_running_addresses
from lazulite.cli.service_client import ServiceAccess, ServiceClient
from lazulite.cli.stress_flags import settings
from lazulite.partitions.targets import Targets, TargetsError, targets_from
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.settings.extras import require_extra
from lazulite.stress import samples
from lazulite.stress.client import Address
from lazulite.stress.histogram import quantile
from lazulite.stress.plan import Plan, PlanError, plan_of, plan_values
from lazulite.stress.plot import png, svg
from lazulite.stress.report import csv_text, json_text, plot
from lazulite.stress.requests import Sample
from lazulite.stress.run import Progress, Step, StressError, store
from lazulite.stress.run import run as run_plan
from lazulite.stress.verdict import Verdict, judge, table_lines

_TERMINATED = 143
_JSON = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}
_SAS_GRACE_SECONDS = 900


class _Kind(NamedTuple):
    """What is made for a test: a table, a queue or a container."""

    access: ServiceAccess
    make: Callable[[ServiceClient, str], object]
    remove: Callable[[ServiceClient, str], object]
    names: Callable[[ServiceClient], Iterator[str]]


def _tables(client: ServiceClient) -> Iterator[str]:
    """Yield the names of the tables that a test may have made."""
    mark = ""
    condition = f"TableName ge '{samples.PREFIX}' and TableName lt '{samples.PREFIX}g'"
    while True:
        answer = client.send("GET", "Tables", {"$filter": condition, "NextTableName": mark}, _JSON)
        yield from (each["TableName"] for each in json.loads(answer.body)["value"])
        mark = answer.headers.get("x-ms-continuation-nexttablename", "")
        if not mark:
            return


def _listed(path: str) -> Callable[[ServiceClient], Iterator[str]]:
    def names(client: ServiceClient) -> Iterator[str]:
        for root in client.pages("", {"comp": "list", "prefix": samples.PREFIX}):
            yield from (each.text or "" for each in root.iterfind(path))

    return names


_KINDS = {
    "table": _Kind(
        ServiceAccess("table", "rwdlacu", safe="%()=',"),
        lambda client, name: client.send("POST", "Tables", None, _JSON, json.dumps({"TableName": name}).encode()),
        lambda client, name: client.send("DELETE", f"Tables('{name}')", None, _JSON),
        _tables,
    ),
    "queue": _Kind(
        ServiceAccess("queue", "rwdlacup"),
        lambda client, name: client.send("PUT", name),
        lambda client, name: client.send("DELETE", name),
        _listed("Queues/Queue/Name"),
    ),
    "blob": _Kind(
        ServiceAccess("blob", "rwdlac"),
        lambda client, name: client.send("PUT", name, {"restype": "container"}),
        lambda client, name: client.send("DELETE", name, {"restype": "container"}),
        _listed("Containers/Container/Name"),
    ),
}
"""By service."""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """The service of an account."""

    named: NamedAccount
    key: int
    host: str
    """Where to connect."""
    hint: str

    @property
    def url(self) -> str:
        return self.named.endpoint

    def client(self, kind: _Kind) -> ServiceClient:
        """Return a client of the service. Raises as its constructor."""
        account, token = self.named.account, self.named.token
        return ServiceClient(account, self.key, self.url, self.host, kind.access, token=token, hint=self.hint)

    def address(self) -> Address:
        url = urlsplit(self.url)
        is_tls = url.scheme == "https"
        return Address(self.host, url.port or (443 if is_tls else 80), is_tls)

    def sample(self, kind: _Kind, name: str, seconds: float) -> Sample:
        """Return a sample with a token that is valid for so many seconds, and some more."""
        token = self.named.token
        if not token:
            expiry = format_sas_date(system_clock() + int(seconds + _SAS_GRACE_SECONDS) * TICKS_PER_SECOND)
            sas = AccountSas(
                services=kind.access.service[0], resource_types="sco", permission=kind.access.permission, expiry=expiry
            )
            token = sign_account_sas(self.named.account, sas, self.key)
        url = urlsplit(self.url)
        return Sample(url.netloc, url.path, self.url, name, token)


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the test, and print a table, the verdict and the limit. The exit code is that of the verdict."""
    try:
        plan = plan_of({**_file_values(args.plan), **settings(args)})
        targets = targets_from(plan.targets)
        if args.png is not None:
            require_extra("png", f"a picture {args.png.name}")
    except (PlanError, TargetsError) as error:
        raise CommandError(error, 2) from None
    except ValueError as error:
        raise CommandError(error) from None
    endpoint, kind = _endpoint(args, environ, plan.service), _KINDS[plan.service]
    with endpoint.client(kind) as client, _ended_by_sigterm():
        removed = _clean(client, kind)
        if args.clean or removed:
            print(f"lazulite: {removed} left over by killed runs: removed", file=sys.stderr)
        if args.clean:
            return 0
        is_here = _is_here(endpoint.host)
        if not (is_here or args.yes):
            _ask(plan, endpoint)
        steps = _measure(client, endpoint, plan, silent=args.silent, is_here=is_here)
    return _report(args, plan, targets, steps, endpoint)


def _file_values(path: Path | None) -> Mapping[str, object]:
    if path is None:
        return {}
    try:
        return plan_values(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read the plan: {error}") from None


def _endpoint(args: Namespace, environ: Mapping[str, str], service: str) -> _Endpoint:
    """Return what flags name: a connection string, or else an account as other commands take it."""
    text = args.connection_string
    if args.connection_string_file is not None:
        text = read_file(args.connection_string_file)
    elif text == "" or (text is None and not any((args.account, args.location_given, args.control_socket))):
        text = environ.get(CONNECTION_STRING_VARIABLE)
    if text:
        named = read_connection_string(connection_text(text, environ), service)
        hint = f"check the {service} endpoint of the connection string"
        return _Endpoint(named, 1, urlsplit(named.endpoint).hostname or "", hint)
    account, args = choose_account(args, environ), with_running_addresses(args, environ)
    named = NamedAccount(account, served(endpoints_of(args, account.name), service), "")
    return _Endpoint(named, args.key, reachable(getattr(args, f"{service}_host")), endpoint_hint(args, service))


def _is_here(host: str) -> bool:
    """Return whether all addresses of a host are this machine's: a socket can have them."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
        for family, kind, *_, address in found:
            with socket.socket(family, kind) as probe:
                probe.bind(address)
    except OSError:
        return False
    return True


def _ask(plan: Plan, endpoint: _Endpoint) -> None:
    """State what a test costs, and go on if that is wanted.

    Raises:
        CommandError: it is not, or no terminal is there to ask.
    """
    print(
        f"{endpoint.url} is not on this machine. The test sends about {plan.transactions():,} requests there, which "
        "are billed as transactions, and stores data until it ends.",
        file=sys.stderr,
    )
    if not sys.stdin.isatty():
        raise CommandError("pass --yes to confirm", 2)
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was sent")


def _clean(client: ServiceClient, kind: _Kind) -> int:
    """Remove what killed runs left over, and return how much that was."""
    try:
        names = samples.left_over(list(kind.names(client)), time.time())
    except PermissionError as error:
        raise CommandError(error) from None
    for name in names:
        kind.remove(client, name)
        samples.forget(name)
    return len(names)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what it made is removed."""

    def end(*_: object) -> NoReturn:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore the signals that ask a process to end inside the block, which is short."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _measure(client: ServiceClient, endpoint: _Endpoint, plan: Plan, *, silent: bool, is_here: bool) -> Sequence[Step]:
    """Return what was measured on a sample that is made before and removed afterwards.

    Raises:
        CommandError: the run cannot go on.
    """
    kind = _KINDS[plan.service]
    seconds = len(plan.loads()) * (plan.seconds + plan.warm_seconds)
    name = samples.new_name(time.time() + seconds)
    sample, address = endpoint.sample(kind, name, seconds), endpoint.address()
    try:
        with samples.locked(name), ProgressLine.of_user(silent=silent) as line:
            kind.make(client, name)
            shown = _RunProgress(line, plan)

            async def work() -> Sequence[Step]:
                await store(plan, sample, address)
                return await run_plan(plan, sample, address, shown.show, probes=not is_here)

            try:
                return asyncio.run(work())
            except (KeyboardInterrupt, SystemExit):
                line.write_note("stopped: there is no result; what the test made is removed")
                raise
            finally:
                # The connection that made the sample was idle for so long that the server may have closed it.
                with _uninterrupted(), endpoint.client(kind) as remover:
                    line.clear()
                    kind.remove(remover, name)
    except StressError as error:
        raise CommandError(error) from None


@dataclass(slots=True)
class _RunProgress:
    """The progress of a run, as a line has it; see `progress_line.Progress`."""

    line: ProgressLine
    plan: Plan
    done: int = 0
    measured: int = 0
    last: Progress | None = field(default=None)
    verb: str = "stressed"

    @property
    def counts(self) -> Mapping[str, int | None]:
        """See `progress_line.Progress`."""
        return {"requests": self.done, "requests_total": None}

    @property
    def of_total(self) -> tuple[int, int] | None:
        """See `progress_line.Progress`."""
        assert self.last is not None, "there is progress"
        windows = round(self.plan.seconds / self.last.window_seconds)
        return (self.measured, windows) if self.last.is_warm else None

    def show(self, progress: Progress) -> None:
        """Show a window."""
        self.measured = self.measured + 1 if progress.is_warm else 0
        self.last, self.done = progress, progress.answered
        self.line.show(self)

    def describe(self, _: float) -> str:
        """See `progress_line.Progress`. The numbers are those of the last window, the most important ones first."""
        assert self.last is not None, "there is progress"
        return live_text(self.last)


def live_text(progress: Progress) -> str:
    """Return a window in words that fit a terminal of 80 columns, but for very high numbers."""
    load, window = progress.load, progress.window
    rate = f"{window.requests * progress.cost / progress.window_seconds:,.0f}"
    asked = "" if load.rate is None else f" of {load.rate * progress.cost:,.0f}"
    latencies = (f"{name} {_short(quantile(window.latencies, share))} ms" for name, share in _LIVE_QUANTILES.items())
    throttled = f"{window.refused.total() / (window.answered or 1):.1%} throttled"
    phase = f"{'step' if progress.is_warm else 'warm-up'} {progress.number}/{progress.steps}"
    clients = [load.name] if load.rate is None else []
    return ", ".join([f"{rate}{asked}/s", *latencies, throttled, phase, *clients])


_LIVE_QUANTILES = {"p50": 0.5, "p99": 0.99}


def _short(seconds: float) -> str:
    """Return milliseconds with three digits, or more if they are a thousand."""
    milliseconds = seconds * 1000
    return f"{milliseconds:,.{2 if milliseconds < 10 else 1 if milliseconds < 100 else 0}f}"


def _report(args: Namespace, plan: Plan, targets: Targets, steps: Sequence[Step], endpoint: _Endpoint) -> int:
    """Print and write what was measured, and return the exit code."""
    verdict = judge(steps, plan, targets)
    for line in table_lines(steps):
        print(line)
    words = {"pass": "pass", "fail": "fail", "none": "no verdict"}
    print(f"{words[verdict.outcome.name.lower()]}: {verdict.sentence}")
    for path, content in _contents(args, plan, steps, verdict, endpoint.url):
        try:
            path.write_bytes(content())
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from None
    return verdict.outcome.value


def _contents(
    args: Namespace, plan: Plan, steps: Sequence[Step], verdict: Verdict, url: str
) -> Iterator[tuple[Path, Callable[[], bytes]]]:
    """Yield each file to be written, with what makes its content."""
    contents: Mapping[str, Callable[[], bytes]] = {
        "csv": lambda: csv_text(steps).encode(),
        "json": lambda: json_text(steps, plan, verdict, url).encode(),
        "svg": lambda: svg(plot(steps, plan, verdict)).encode(),
        "png": lambda: png(plot(steps, plan, verdict)),
    }
    for name, content in contents.items():
        path = getattr(args, name)
        if path is not None:
            yield path, content
