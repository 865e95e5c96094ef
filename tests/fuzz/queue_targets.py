"""Targets of the Queue service: message bodies; and whole requests with names, metadata, numbers and receipts."""

import base64
import re
from urllib.parse import quote, unquote_to_bytes
from xml.etree import ElementTree as ET

from .oracles import require
from .queue_world import QUEUE, TEXTS, QueueWorld
from .request_text import fit_in_target, read_request
from .world import ROOT, Exchange

_TEXT_BYTES_MAX = 65_536
_DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?<\?xml[^>]*\?>")
_MESSAGES = f"{ROOT}{QUEUE}/messages"


def _read(exchange: Exchange) -> list[dict[str, str]]:
    require(exchange.status == 200, "messages can be read")
    root = ET.fromstring(exchange.response.body)
    return [{child.tag: child.text or "" for child in node} for node in root]


def messages(world: QueueWorld, data: bytes) -> None:
    """`put` or `update`, a query, and the body on the lines below.

    What is accepted reads back as a strict parser has it. An update without a body leaves the text as it was.
    """
    line, _, body = data.partition(b"\n")
    verb, _, query = fit_in_target(line.decode("latin-1").replace(" ", "?", 1)).partition("?")
    if verb == "update":
        [claimed] = _read(world.ask("GET", _MESSAGES))
        receipt = f"popreceipt={quote(claimed['PopReceipt'], safe='')}&visibilitytimeout=0"
        done = world.ask("PUT", f"{_MESSAGES}/{claimed['MessageId']}", receipt, body=body)
        require(done.status in (204, 400, 413), "an update is done, or its body is wrong")
        texts, before = [claimed["MessageText"]], set(TEXTS) - {claimed["MessageText"]}
    else:
        done = world.put(body, query)
        texts, before = [], set(TEXTS)
    found = [each["MessageText"] for each in _read(world.ask("GET", _MESSAGES, "peekonly=true&numofmessages=32"))]
    if done.status >= 300:
        require(set(found) == before, "a rejected body changes nothing")
    elif body or verb != "update":
        texts = [_text_of(body)]
    if done.status < 300 and "visibilitytimeout" not in query.lower():
        require(texts[0] in found, "an accepted text reads back as it was sent")
        require(len(texts[0].encode()) <= _TEXT_BYTES_MAX, "an accepted text has its bound")


def _text_of(body: bytes) -> str:
    # The encoding that a document declares is ignored.
    root = ET.fromstring(_DECLARATION.sub(b"", body, count=1))
    text = root.findtext("MessageText")
    require(root.tag == "QueueMessage" and text is not None, "an accepted body is a message")
    assert text is not None
    return text


def queues(world: QueueWorld, data: bytes) -> None:
    """`METHOD target`, header lines, and a body behind an empty line.

    `{id}` and `{receipt}` stand for those of a claimed message. Only its id and its latest receipt, however they are
    spelled, delete or update it.
    """
    [claimed] = _read(world.ask("GET", _MESSAGES))
    data = data.replace(b"{id}", claimed["MessageId"].encode())
    sent = read_request(data.replace(b"{receipt}", quote(claimed["PopReceipt"], safe="").encode()))
    method, path, query = sent.method, sent.path, sent.query
    done = world.ask(method, ROOT + path, query, sent.fields, sent.body)
    by_receipt = re.match(r"[^/]+/+messages/[^/]", unquote_to_bytes(path.encode("latin-1")).decode("latin-1"))
    if done.status < 300 and method in ("PUT", "DELETE") and by_receipt:
        require(_has(query, claimed["PopReceipt"]), "only the latest receipt changes a message")
    if not done.wrote:
        left = _read(world.ask("GET", _MESSAGES, "peekonly=true&numofmessages=32"))
        unclaimed = set(TEXTS) - {claimed["MessageText"]}
        require({each["MessageText"] for each in left} == unclaimed, "what was not written is as it was")


def _has(query: str, receipt: str) -> bool:
    """Tell whether a query has a receipt that begins otherwise at most: an update's begins with 3, a get's with 2."""
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if unquote_to_bytes(name.encode("latin-1")).lower() == b"popreceipt":
            text = unquote_to_bytes(value.replace("+", " ").encode("latin-1")).replace(b" ", b"+")
            return base64.b64decode(text)[4:] == base64.b64decode(receipt)[4:]
    return False
