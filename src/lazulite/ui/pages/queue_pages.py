"""The queues of an account, the messages of a queue by their state, and one message.

Invariants: a look changes nothing, so that dequeue counts stay. A message is named by its position, which changes with
each change of the message: an action on a message that a consumer has taken meanwhile is refused. A move puts the copy
first and then deletes the original, so that an interrupted one may leave both, and never neither.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape

from lazulite.app.commands import QUEUE_MESSAGES, QueueArguments
from lazulite.control.command import ControlError
from lazulite.ui.backend import Answer, BackendError, ServiceClient
from lazulite.ui.calls import Context, PageCall, PageError, Redirect, link
from lazulite.ui.jobs import Job, Work
from lazulite.ui.tables.values import Value, with_line_ends

LIST = "/{account}/queues"
QUEUE = "/{account}/queues/{queue}"
MESSAGE = "/{account}/queues/{queue}/message"
QUEUES_SHOWN = 100
MESSAGES_SHOWN = 50
TEXT_SHOWN = 240
DEPTH_MAX = 16
"""The depth of JSON that is laid out. Each level indents all lines of those inside, so a deep text becomes huge."""
POISON = "-poison"
VIEWS = ("auto", "text", "base64", "json")
_NEVER = -1
_XML = {"Content-Type": "application/xml"}


class StoredMessage(NamedTuple):
    """A message as the server has it."""

    position: str
    id: str
    receipt: str
    text: str
    state: str
    """`visible`, `delayed` or `in flight`."""
    hidden_seconds: int
    lives_seconds: int
    """`_NEVER` for a message that does not expire."""
    dequeues: int
    inserted: str
    visible: str


class ShownText(NamedTuple):
    """The text of a message for people."""

    text: str
    form: str
    """How it is shown: `text`, `base64` or `json`."""
    cut: int
    """Characters that are left out."""


async def list_queues(call: PageCall) -> Context:
    """Return a page of the queues of an account."""
    client = call.service("queue")
    parameters = {
        "comp": "list",
        "maxresults": str(QUEUES_SHOWN),
        "prefix": call.query.get("prefix", ""),
        "marker": call.page_of(),
    }
    root = (await client.send("GET", "", parameters)).xml()
    names = [each.findtext("Name", "") for each in root.iter("Queue")]
    queues = [{"name": name, "messages": await _count(client, name)} for name in names]
    following = root.findtext("NextMarker") or ""
    return {
        "queues": queues,
        "next": following,
        "seen": _number(call.query.get("seen", "")) + len(names),
        "prefix": parameters["prefix"],
    }


async def create_queue(call: PageCall) -> Redirect:
    """Create a queue."""
    name = call.form.get("name", "").strip()
    await call.service("queue").send("PUT", quote(name, safe=""))
    return Redirect(link(QUEUE, account=call.account, queue=name), f"{name} was created.")


async def show_queue(call: PageCall) -> Context:
    """Return a page of the messages of a queue, hidden ones included, with their states."""
    name = _queue(call)
    metadata = await call.service("queue").send("GET", name, {"comp": "metadata"})
    found = await _messages(call, call.page_of(), MESSAGES_SHOWN + 1)
    shown, view = found[:MESSAGES_SHOWN], _view(call)
    parent = name.removesuffix(POISON)
    return {
        "queue": name,
        "count": _number(metadata.headers.get("x-ms-approximate-messages-count", "")),
        "metadata": _metadata(metadata),
        "messages": [await _row(each, view) for each in shown],
        "next": found[MESSAGES_SHOWN].position if len(found) > MESSAGES_SHOWN else "",
        "seen": _number(call.query.get("seen", "")) + len(shown),
        "view": view,
        "views": VIEWS,
        "move_to": parent if parent != name else "",
    }


async def _row(message: StoredMessage, view: str) -> Context:
    """Return a message of a list. Requests pass between two of them, as each may be long."""
    await asyncio.sleep(0)
    return {"message": message, "shown": shown_text(message.text, view, TEXT_SHOWN)}


async def show_message(call: PageCall) -> Context:
    """Return one message with its whole text."""
    message = await _message(call, call.query.get("position", ""))
    view = _view(call)
    return {
        "queue": _queue(call),
        "message": message,
        "shown": shown_text(message.text, view, len(message.text) * 4 + 1),
        "view": view,
        "views": VIEWS,
    }


async def put_message(call: PageCall) -> Redirect:
    """Put a message."""
    text = with_line_ends(Value("String", call.form.get("text", "")), None).text
    if call.form.get("encoding") == "base64":
        text = b64encode(text.encode()).decode()
    delay, lives = call.form.get("delay", "").strip(), call.form.get("lives", "").strip()
    await _put(call.service("queue"), _queue(call), text, delay, lives)
    return Redirect(_here(call), "The message was put.")


async def edit_message(call: PageCall) -> Redirect:
    """Change the text of a message, and make it visible at once or later."""
    message = await _message(call, call.query.get("position", ""))
    text = with_line_ends(Value("String", call.form.get("text", "")), Value("String", message.text)).text
    delay = call.form.get("delay", "").strip() or "0"
    await _update(call, message, delay, _document(text))
    return Redirect(_here(call), "The message was changed.")


async def requeue(call: PageCall) -> Redirect:
    """Make the selected messages visible now. Their dequeue counts stay."""
    selected = await _selected(call)
    for message in selected:
        await _update(call, message, "0", b"")
    return Redirect(_here(call), f"{_counted(selected)} made visible.")


async def delete_messages(call: PageCall) -> Redirect:
    """Delete the selected messages."""
    selected = await _selected(call)
    for message in selected:
        await _delete(call.service("queue"), _queue(call), message)
    return Redirect(_here(call), f"{_counted(selected)} deleted.")


async def move_messages(call: PageCall) -> Redirect:
    """Move the selected messages to another queue, or all of them by a job."""
    target, source = call.form.get("target", "").strip(), _queue(call)
    if target == source or not target:
        raise PageError(400, "enter the name of another queue")
    client = call.service("queue")
    await client.send("GET", quote(target, safe=""), {"comp": "metadata"})  # It must exist before anything moves.
    if call.form.get("which") == "all":
        work = _move_all(call, source, target, _number(call.form.get("count", "")))
        job = call.jobs.start(f"Move messages from {source} to {target}", work, account=call.account)
        job.result = link(QUEUE, account=call.account, queue=target)
        return Redirect.to_job(job)
    selected = await _selected(call)
    for message in selected:
        await _move(client, source, target, message)
    return Redirect(_here(call), f"{_counted(selected)} moved to {target}.")


async def clear_queue(call: PageCall) -> Redirect:
    """Remove all messages; the name of the queue is typed."""
    _confirm(call)
    await call.service("queue").send("DELETE", f"{_queue(call)}/messages")
    return Redirect(link(QUEUE, account=call.account, queue=_queue(call)), f"{_queue(call)} is empty.")


async def delete_queue(call: PageCall) -> Redirect:
    """Delete a queue; its name is typed."""
    _confirm(call)
    await call.service("queue").send("DELETE", _queue(call))
    return Redirect(link(LIST, account=call.account), f"{_queue(call)} was deleted.")


def shown_text(text: str, view: str, characters_max: int) -> ShownText:
    """Return the text of a message for people.

    Args:
        text: of the message.
        view: of `VIEWS`. `auto` decodes Base64 of UTF-8, and lays out JSON.
        characters_max: what is longer is cut, and says so.
    """
    form = "text"
    if view in ("auto", "base64"):
        decoded = _decoded(text)
        if decoded is not None:
            text, form = decoded, "base64"
    if view in ("auto", "json"):
        laid_out = _laid_out(_decoded(text) or text if view == "json" else text)
        if laid_out is not None:
            text, form = laid_out, "json"
    return ShownText(text[:characters_max], form, max(0, len(text) - characters_max))


def _decoded(text: str) -> str | None:
    """Return the text that Base64 stands for; None if it stands for none, or is too short to tell."""
    if len(text) < 4:
        return None
    try:
        return b64decode(text, validate=True).decode()
    except (Base64Error, ValueError):
        return None


def _laid_out(text: str) -> str | None:
    """Return a JSON object or array with indentation and its numbers as they are; None for another text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _rendered(json.loads(text, parse_float=_Digits, parse_int=_Digits))
    except (ValueError, RecursionError):
        return None


class _Digits(str):
    """The text of a JSON number."""


def _rendered(value: object, margin: str = "") -> str:
    """Return JSON with indentation. Raises `RecursionError`: it is nested deeper than `DEPTH_MAX`."""
    inner = margin + "  "
    if len(inner) > 2 * DEPTH_MAX + 2:
        raise RecursionError
    if isinstance(value, dict):
        marks = "{}"
        parts = [f"{json.dumps(name, ensure_ascii=False)}: {_rendered(each, inner)}" for name, each in value.items()]
    elif isinstance(value, list):
        marks, parts = "[]", [_rendered(each, inner) for each in value]
    else:
        return value if isinstance(value, _Digits) else json.dumps(value, ensure_ascii=False)
    lines = ",\n".join(inner + part for part in parts)
    return f"{marks[0]}\n{lines}\n{margin}{marks[1]}" if parts else marks


async def _messages(call: PageCall, start: str, count: int) -> Sequence[StoredMessage]:
    arguments = QueueArguments(call.account, _queue(call), start, count)
    try:
        items = await call.command(QUEUE_MESSAGES, arguments)
    except ControlError as error:
        if error.code == "no-queue":
            raise PageError(404, str(error)) from None
        raise
    return [_stored(item) for item in items if isinstance(item, Mapping)]


def _stored(item: Mapping[str, object]) -> StoredMessage:
    hidden, dequeues = int(str(item["hidden_seconds"])), int(str(item["dequeues"]))
    state = "visible" if not hidden else "in flight" if dequeues else "delayed"
    inserted, visible = (_time(float(str(item[name]))) for name in ("inserted", "visible"))
    texts = (str(item[name]) for name in ("position", "id", "receipt", "text"))
    position, message_id, receipt, text = texts
    lives = int(str(item["lives_seconds"]))
    return StoredMessage(position, message_id, receipt, text, state, hidden, lives, dequeues, inserted, visible)


async def _message(call: PageCall, position: str) -> StoredMessage:
    """Return the message at a position. Raises `PageError`: it has been taken, changed or deleted."""
    found = await _messages(call, position, 1)
    if not found or found[0].position != position:
        raise PageError(409, "the message is not there any more: a client has taken, changed or deleted it")
    return found[0]


async def _selected(call: PageCall) -> Sequence[StoredMessage]:
    positions = call.fields.get("message", ())
    if not positions:
        raise PageError(400, "no message is selected")
    return [await _message(call, position) for position in positions]


def _move_all(call: PageCall, source: str, target: str, most: int) -> Work:
    """Return a job that moves all messages that are not in flight, or so many of them."""
    client = call.service("queue")

    async def work(job: Job) -> None:
        position, left_alone = "", 0
        while True:
            found = await _messages(call, position, MESSAGES_SHOWN + 1)
            for message in found[:MESSAGES_SHOWN]:
                if message.state == "in flight":
                    left_alone += 1
                    continue
                await _move(client, source, target, message)
                await job.step()
                if job.done == most:
                    return
            if len(found) <= MESSAGES_SHOWN:
                break
            position = found[MESSAGES_SHOWN].position
        if left_alone:
            are = "message is" if left_alone == 1 else "messages are"
            job.say(f"{left_alone:,} {are} in flight, and left there")

    return work


async def _move(client: ServiceClient, source: str, target: str, message: StoredMessage) -> None:
    """Move a message. One that a consumer has taken meanwhile stays, and its copy goes. Raises `BackendError`."""
    copy = await _put(client, target, message.text, str(message.hidden_seconds), str(message.lives_seconds))
    try:
        await _delete(client, source, message)
    except BackendError as error:
        if error.status not in (400, 404):
            raise
        made = copy.xml().find("QueueMessage")
        assert made is not None
        receipt = {"popreceipt": made.findtext("PopReceipt", "")}
        await client.send("DELETE", f"{target}/messages/{made.findtext('MessageId', '')}", receipt)


async def _put(client: ServiceClient, queue: str, text: str, delay: str, lives: str) -> Answer:
    parameters = {"visibilitytimeout": delay if delay != "0" else "", "messagettl": lives}
    return await client.send("POST", f"{quote(queue, safe='')}/messages", parameters, _XML, _document(text))


async def _update(call: PageCall, message: StoredMessage, delay: str, body: bytes) -> None:
    parameters = {"popreceipt": message.receipt, "visibilitytimeout": delay}
    await call.service("queue").send("PUT", f"{_queue(call)}/messages/{message.id}", parameters, _XML, body)


async def _delete(client: ServiceClient, queue: str, message: StoredMessage) -> None:
    await client.send("DELETE", f"{queue}/messages/{message.id}", {"popreceipt": message.receipt})


def _document(text: str) -> bytes:
    escaped = escape(text, {"\r": "&#13;"})
    return f"<QueueMessage><MessageText>{escaped}</MessageText></QueueMessage>".encode("utf-8", "surrogatepass")


async def _count(client: ServiceClient, name: str) -> int | None:
    try:
        answer = await client.send("GET", name, {"comp": "metadata"})
    except BackendError as error:
        if error.status == 404:  # Deleted since the list was made.
            return None
        raise
    return _number(answer.headers.get("x-ms-approximate-messages-count", ""))


def _metadata(answer: Answer) -> Mapping[str, str]:
    prefix = "x-ms-meta-"
    return {name.removeprefix(prefix): text for name, text in answer.headers.items() if name.startswith(prefix)}


def _queue(call: PageCall) -> str:
    """Return the name of the queue. Raises `PageError`: there can be none of that name."""
    name = call.parameters["queue"]
    if not name.replace("-", "").isalnum() or not name.isascii() or len(name) > 63:
        raise PageError(404, f"there is no queue {name[:64]}")
    return name


def _confirm(call: PageCall) -> None:
    if call.form.get("confirm") != _queue(call):
        raise PageError(400, f"nothing was changed: type {_queue(call)} to confirm")


def _view(call: PageCall) -> str:
    given = call.query.get("view", "")
    return given if given in VIEWS else VIEWS[0]


def _here(call: PageCall) -> str:
    query = {**call.query, "do": "", "position": "", "account": call.account, "queue": _queue(call)}
    return link(QUEUE, **query)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 15 else 0


def _counted(selected: Sequence[StoredMessage]) -> str:
    return "1 message was" if len(selected) == 1 else f"{len(selected)} messages were"


def _time(seconds: float) -> str:
    """Return an instant for people, to the second."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}Z"
