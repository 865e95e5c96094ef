"""Shared Key, Shared Key Lite, account SAS, service SAS and stored access policies on queues."""

from urllib.parse import quote

import pytest
from tests.conformance import rejected_credentials
from tests.conformance.access_policies import malformed
from tests.conformance.answers import xml_text
from tests.conformance.rejected_credentials import FRAMES, detail_of
from tests.conformance.sas import account_sas, moment
from tests.conformance.signing import Endpoint, anonymous, full_shared_key, full_shared_key_lite, shared_key

from .queues import Queue, Queues, message_body, messages_of, new_name, queue_sas


@pytest.mark.parametrize("signer", [full_shared_key, full_shared_key_lite])
def test_signatures(queue: Queue, signer: object) -> None:
    metadata = {"x-ms-meta-b": "two  blanks", "x-ms-meta-a": ""}
    assert queue.put("a", "visibilitytimeout=0&messagettl=60", signer=signer).status == 201
    assert queue.send("GET", "/messages", "Numofmessages=2&peekonly=true", signer=signer).status == 200
    assert queue.send("GET", query="comp=acl", signer=signer).status == 200
    assert queue.send("DELETE", "/messages", signer=signer, headers=metadata | {"x-ms-meta-b": "one"}).status == 204


def test_other_signatures(queue: Queue) -> None:
    assert queue.send("GET", "/messages", signer=shared_key).code == (403, "AuthenticationFailed")
    assert queue.send("GET", "/messages", signer=anonymous).code == (401, "NoAuthenticationInformation")


def test_the_query_is_signed(queue: Queue, queue_endpoint: Endpoint) -> None:
    def with_another_query(endpoint: Endpoint, request: object) -> str:
        return full_shared_key(endpoint, request._replace(query="numofmessages=1"))  # type: ignore[attr-defined]

    assert queue.send("GET", "/messages", "numofmessages=2", signer=with_another_query).status == 403


OPERATIONS = {
    "peek": ("GET", "/messages", "peekonly=true", "r"),
    "metadata": ("GET", "", "comp=metadata", "r"),
    "put": ("POST", "/messages", "", "a"),
    "get": ("GET", "/messages", "", "p"),
    "delete": ("DELETE", "/messages/{id}", "{receipt}", "p"),
    "update": ("PUT", "/messages/{id}", "{receipt}&visibilitytimeout=0", "u"),
    "clear": ("DELETE", "/messages", "", ""),
    "create": ("PUT", "", "", ""),
    "delete queue": ("DELETE", "", "", ""),
    "set metadata": ("PUT", "", "comp=metadata", ""),
    "acl": ("GET", "", "comp=acl", ""),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_permissions_of_a_service_sas(queue: Queue, queue_endpoint: Endpoint, operation: str) -> None:
    method, below, query, letter = OPERATIONS[operation]
    [put] = messages_of(queue.put())
    below, query = (text.format(id=put.id, receipt=put.receipt) for text in (below, query))
    body = message_body("a") if method == "POST" else None

    def ask(permissions: str) -> int:
        token = queue_sas(queue_endpoint, queue.name, sp=permissions)
        return queue.send(method, below, f"{query}&{token}".strip("&"), body=body, signer=anonymous).status

    others = "".join(each for each in "raup" if each != letter)
    assert ask(others) == 403
    assert (ask("raup") < 300) is (letter != "")


ACCOUNT = {
    "list": ("GET", "/", "comp=list", "s", "l"),
    "create": ("PUT", "/{queue}", "", "c", "w"),
    "metadata": ("GET", "/{queue}", "comp=metadata", "c", "r"),
    "set metadata": ("PUT", "/{queue}", "comp=metadata", "c", "w"),
    "put": ("POST", "/{queue}/messages", "", "o", "a"),
    "get": ("GET", "/{queue}/messages", "", "o", "p"),
    "peek": ("GET", "/{queue}/messages", "peekonly=true", "o", "r"),
    "clear": ("DELETE", "/{queue}/messages", "", "o", "d"),
    "properties": ("GET", "/", "restype=service&comp=properties", "s", "r"),
    "delete": ("DELETE", "/{queue}", "", "c", "d"),
}


@pytest.mark.parametrize("operation", ACCOUNT)
def test_permissions_of_an_account_sas(queue: Queue, queue_endpoint: Endpoint, operation: str) -> None:
    method, path, query, kind, letter = ACCOUNT[operation]
    body = message_body("a") if method == "POST" else None

    def ask(**fields: str) -> tuple[int, str]:
        token = account_sas(queue_endpoint, {"ss": "q", "sp": letter, "srt": kind} | fields)
        text = f"{query}&{token}".strip("&")
        answer = queue.queues.send(method, path.format(queue=queue.name), text, body=body, signer=anonymous)
        return answer.code

    assert ask(ss="t") == (403, "AuthorizationServiceMismatch")
    assert ask(srt="sco".replace(kind, "")) == (403, "AuthorizationResourceTypeMismatch")
    assert ask(sp="rwdlacup".replace(letter, "").replace("c" if letter == "w" else "_", "")) == (
        403,
        "AuthorizationPermissionMismatch",
    )
    assert ask()[0] < 300


def test_a_service_sas_is_for_its_queue(queue: Queue, queues: Queues, queue_endpoint: Endpoint) -> None:
    other = Queue(queues, new_name())
    other.send("PUT").expect(201)
    token = queue_sas(queue_endpoint, queue.name)
    for _ in range(2):  # A token that was verified for one queue is not taken for another.
        assert queue.send("GET", "/messages", token, signer=anonymous).status == 200
        assert other.send("GET", "/messages", token, signer=anonymous).code == (403, "AuthenticationFailed")
        marked = f"{token}&Queue={queue.name}&queue={queue.name}"
        assert other.send("GET", "/messages", marked, signer=anonymous).code == (403, "AuthenticationFailed")
    assert queues.send("GET", "/", f"comp=list&{token}", signer=anonymous).code == (403, "AuthenticationFailed")
    other.send("DELETE").expect(204)


def test_a_service_sas_has_its_time(queue: Queue, queue_endpoint: Endpoint) -> None:
    late = queue_sas(queue_endpoint, queue.name, se=moment(-1))
    assert queue.send("GET", "/messages", late, signer=anonymous).code == (403, "AuthenticationFailed")


@pytest.mark.parametrize("version", ["2012-02-12", "2013-08-15", "2015-02-21", "2015-04-05", "2020-12-06"])
def test_each_version_of_a_service_sas(queue: Queue, queue_endpoint: Endpoint, version: str) -> None:
    token = queue_sas(queue_endpoint, queue.name, sv=version)
    assert queue.send("GET", "/messages", token, signer=anonymous, version=version).status == 200
    forged = token.replace(f"sv={version}", "sv=2014-02-14")
    assert queue.send("GET", "/messages", forged, signer=anonymous).code == (403, "AuthenticationFailed")


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"spr": "https"}, "AuthorizationProtocolMismatch"), ({"sip": "192.0.2.1"}, "AuthorizationSourceIPMismatch")],
)
def test_a_service_sas_is_for_its_transport(
    queue: Queue, queue_endpoint: Endpoint, fields: dict[str, str], code: str
) -> None:
    if queue_endpoint.scheme == "https" and "spr" in fields:
        pytest.skip("the endpoint has HTTPS")
    token = queue_sas(queue_endpoint, queue.name, **fields)
    assert queue.send("GET", "/messages", token, signer=anonymous).code == (403, code)


def test_stored_access_policies(queue: Queue, queue_endpoint: Endpoint) -> None:
    assert xml_text(queue.send("GET", query="comp=acl").expect(200).body).endswith("<SignedIdentifiers />")
    policy = (
        "<SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2100-01-01T00:00:00.0000000Z</Expiry>"
        "<Permission>rp</Permission></AccessPolicy></SignedIdentifier>"
    )
    body = f"<SignedIdentifiers>{policy}</SignedIdentifiers>"
    token = queue_sas(queue_endpoint, queue.name, si="readers", sp="", se="")
    assert queue.send("GET", "/messages", token, signer=anonymous).code == (403, "AuthenticationFailed")
    queue.send("PUT", query="comp=acl", body=body).expect(204)
    assert policy in xml_text(queue.send("GET", query="comp=acl").body)
    assert queue.send("GET", "/messages", token, signer=anonymous).status == 200
    put = queue.send("POST", "/messages", token, body=message_body("a"), signer=anonymous)
    assert put.code == (403, "AuthorizationPermissionMismatch")
    queue.send("PUT", query="comp=acl", body="").expect(204)
    assert queue.send("GET", "/messages", token, signer=anonymous).status == 403


QUEUE_ACLS = malformed("raup")


@pytest.mark.parametrize("text", QUEUE_ACLS.values(), ids=QUEUE_ACLS)
def test_invalid_contents_of_an_acl(queue: Queue, text: str) -> None:
    assert queue.send("PUT", query="comp=acl", body=text).code == (400, "InvalidXmlDocument")


@pytest.mark.parametrize("permission", ["pr", "d", "raud"])
def test_permissions_of_policies(queue: Queue, permission: str) -> None:
    body = (
        f"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>{permission}</Permission>"
        "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    assert queue.send("PUT", query="comp=acl", body=body).status == 400


def test_the_rejection_of_a_signature_shows_the_string_to_sign(queues: Queues, queue_endpoint: Endpoint) -> None:
    """Queue reference §17."""
    rejected_credentials.check_shared_key(
        lambda query, headers, signer: queues.send("GET", "/", query, headers=headers, signer=signer), queue_endpoint
    )


def test_the_rejection_of_an_old_date_shows_it(queues: Queues) -> None:
    rejected_credentials.check_old_date(
        lambda query, headers, signer: queues.send("GET", "/", query, headers=headers, signer=signer)
    )


def test_the_rejection_of_an_account_sas_says_why(queues: Queues, queue_endpoint: Endpoint) -> None:
    rejected_credentials.check_account_sas(
        lambda query, _, signer: queues.send("GET", "/", query, signer=signer), queue_endpoint, "q"
    )


def test_the_rejection_of_a_service_sas_says_why(queue: Queue, queue_endpoint: Endpoint) -> None:
    def ask(query: str) -> str:
        return detail_of(queue.send("GET", "/messages", query, signer=anonymous))

    token = queue_sas(queue_endpoint, queue.name, se="2100-01-01T00:00:00Z")
    resource = f"/queue/{queue_endpoint.account}/{queue.name}"
    text = f"raup\n\n2100-01-01T00:00:00Z\n{resource}\n\n\n\n2019-02-02"
    assert ask(token.replace("&sig=", "&sig=A")) == f"Signature did not match. String to sign used was {text}"
    for fields, pattern in FRAMES.values():
        assert pattern.fullmatch(ask(queue_sas(queue_endpoint, queue.name, **fields)))


def test_a_sixth_policy(queue: Queue) -> None:
    policies = "".join(f"<SignedIdentifier><Id>{number}</Id></SignedIdentifier>" for number in range(6))
    answer = queue.send("PUT", query="comp=acl", body=f"<SignedIdentifiers>{policies}</SignedIdentifiers>")
    assert answer.code == (400, "InvalidXmlDocument")


def test_a_receipt_with_unencoded_characters(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    raw = quote(put.fields["PopReceipt"], safe="+/=")
    assert queue.send("DELETE", f"/messages/{put.id}", f"popreceipt={raw}").status == 204
