"""What the Blob service tells the sender of credentials that it rejects."""

import pytest
from tests.conformance import rejected_credentials
from tests.conformance.rejected_credentials import FRAMES, detail_of, forged
from tests.conformance.sas import account_sas, moment, query_text
from tests.conformance.signing import Endpoint, anonymous, full_shared_key_lite, signature

from .blobs import Blobs
from .resources import Resource

KEY = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="


def blob_sas(endpoint: Endpoint, blob: Resource, fields: dict[str, str]) -> tuple[str, str]:
    """A service SAS of a blob, and the string that it signs."""
    values = {"sv": "2020-12-06", "se": moment(60), "sp": "r", "sr": "b"} | fields
    resource = f"/blob/{endpoint.account}/{blob.container.name}/{blob.name}"
    lines = [values["sp"], values.get("st", ""), values["se"], resource, "", "", "", values["sv"], "b"]
    text = "\n".join(lines + [""] * 7)
    return query_text(values | {"sig": signature(endpoint.key, text)}), text


def test_the_rejection_of_a_signature_shows_the_string_to_sign(blobs: Blobs, blob_endpoint: Endpoint) -> None:
    """§44."""
    rejected_credentials.check_shared_key(
        lambda query, headers, signer: blobs.send("GET", "/", query, headers=headers, signer=signer), blob_endpoint
    )


def test_shared_key_lite_has_a_string_of_its_own(blob: Resource, blob_endpoint: Endpoint) -> None:
    detail = detail_of(blob.send("GET", "comp=metadata&x=1", signer=forged(full_shared_key_lite)))
    path = f"/{blob_endpoint.account}/{blob.container.name}/{blob.name}"
    assert detail.endswith(f"\n/{blob_endpoint.account}{path}?comp=metadata'.")


def test_the_rejection_of_an_old_date_shows_it(blobs: Blobs) -> None:
    rejected_credentials.check_old_date(
        lambda query, headers, signer: blobs.send("GET", "/", query, headers=headers, signer=signer)
    )


def test_the_rejection_of_an_account_sas_says_why(blobs: Blobs, blob_endpoint: Endpoint) -> None:
    rejected_credentials.check_account_sas(
        lambda query, _, signer: blobs.send("GET", "/", query, signer=signer), blob_endpoint, "b"
    )


def test_the_rejection_of_a_service_sas_says_why(blob: Resource, blob_endpoint: Endpoint) -> None:
    def ask(query: str) -> str:
        return detail_of(blob.send("GET", query, signer=anonymous))

    token, text = blob_sas(blob_endpoint, blob, {})
    blob.send("GET", token, signer=anonymous).expect(200)
    assert ask(token.replace("&sig=", "&sig=A")) == f"Signature did not match. String to sign used was {text}"
    for fields, pattern in FRAMES.values():
        assert pattern.fullmatch(ask(blob_sas(blob_endpoint, blob, fields)[0]))


def test_any_sas_reads_the_information_of_the_account(blob: Resource, blob_endpoint: Endpoint) -> None:
    """§44: whatever it permits."""
    paths = ("", f"/{blob.container.name}", f"/{blob.container.name}/{blob.name}", f"/{blob.container.name}/missing")
    tokens = [
        account_sas(blob_endpoint, {"ss": "b", "srt": types, "sp": letters})
        for types, letters in (("co", "wd"), ("s", "l"), ("o", "r"), ("c", "f"))
    ]
    asked = [(path, token) for path in paths for token in tokens]
    asked.append((paths[2], blob_sas(blob_endpoint, blob, {"sp": "d"})[0]))
    for path, token in asked:
        for method in ("GET", "HEAD"):
            query = f"restype=account&comp=properties&{token}"
            answer = blob.container.blobs.send(method, path or "/", query, signer=anonymous).expect(200)
            assert answer.header("x-ms-account-kind") == "StorageV2"


def test_the_information_of_the_account_needs_a_valid_sas(blob: Resource, blob_endpoint: Endpoint) -> None:
    query = "restype=account&comp=properties&"
    for fields in ({"ss": "q"}, {"se": "2020-01-01"}, {"ss": "b", "se": "2020-01-01"}):
        token = account_sas(blob_endpoint, fields)
        assert blob.container.blobs.send("GET", "/", query + token, signer=anonymous).status == 403
    assert blob.container.blobs.send("GET", "/", query, signer=anonymous).status == 401


@pytest.mark.unverified
def test_keys_and_signatures_of_others_are_not_shown(blob: Resource) -> None:
    """A client writes rejections into its logs."""
    headers = {
        "x-ms-copy-source": "https://other.example/c/b?sv=2020-12-06&sig=SECRET&se=2100-01-01",
        "x-ms-copy-source-authorization": "Bearer SECRET",
        "x-ms-encryption-key": KEY,
        "x-ms-source-encryption-key": KEY,
    }
    detail = detail_of(blob.send("PUT", "", headers, signer=forged()))
    assert "SECRET" not in detail
    assert KEY not in detail
    assert "x-ms-copy-source:https://other.example/c/b?sv=2020-12-06&sig=" in detail
