"""The certificate that the server shows, from PEM files that may be replaced while it runs.

Invariant: `context` is always one that works: a pair of files that cannot be used replaces nothing.
"""

import ssl
from pathlib import Path

_FILE_BYTES_MAX = 1024 * 1024
_PKCS12 = "openssl pkcs12 -in FILE.pfx -nodes -out FILE.pem makes PEM of a PFX file"


class CertificateError(Exception):
    """The files cannot be used; the text is one line for the operator, without secrets."""


class Certificate:
    """A certificate chain and its private key.

    Args:
        chain: the file of the certificate and those between it and the root.
        key: the file of its key; None if that is in the same file.

    Raises:
        CertificateError: the files cannot be used.
    """

    def __init__(self, chain: Path, key: Path | None = None) -> None:
        self._chain = chain
        self._key = key or chain
        self.context = self._load()
        """What new connections are secured with."""

    def reload(self) -> None:
        """Read the files again, for connections to come.

        Raises:
            CertificateError: they cannot be used; the certificate stays what it was.
        """
        self.context = self._load()

    def _load(self) -> ssl.SSLContext:
        _check_holds(self._chain, b"-----BEGIN CERTIFICATE-----", "certificate")
        _check_holds(self._key, b"PRIVATE KEY-----", "private key")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._chain, self._key, self._reject_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise CertificateError(
                    f"the key in {self._key} is not that of the certificate in {self._chain}"
                ) from error
            reason = (error.reason or "unreadable").lower().replace("_", " ")
            raise CertificateError(f"cannot use {self._chain} with the key in {self._key}: {reason}") from error
        except OSError as error:
            raise CertificateError(f"cannot read {self._chain} or {self._key}: {error.strerror}") from error
        return context

    def _reject_password(self) -> str:
        raise CertificateError(f"the key in {self._key} is encrypted; openssl pkey -in {self._key} decrypts it")


def _check_holds(path: Path, mark: bytes, what: str) -> None:
    """Say which file is at fault, which OpenSSL does not."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error
    if len(text) > _FILE_BYTES_MAX:
        raise CertificateError(f"{path} is too large for a {what}")
    if mark not in text:
        raise CertificateError(f"{path} holds no {what} in PEM; {_PKCS12}")
