"""Certificates for tests: an authority of one's own, and what it signs."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Files(NamedTuple):
    """Where a certificate and its key are."""

    cert: Path
    key: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """What tells `lazulite serve` of them."""
        return "--cert", str(self.cert), "--key", str(self.key)


class Authority:
    """Signs certificates; `root` is the file that clients trust."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _sign(_name("test root"), self._key, _name("test root"), self._key, ca=True)
        self.root = directory / "root.pem"
        self.root.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str = "server", password: bytes | None = None) -> Files:
        """Write a certificate of that common name, for this machine, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(_name(name), key, self._certificate.subject, self._key, ca=False)
        files = Files(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        files.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        encryption = (
            serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
        )
        files.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    ca: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    here = [x509.DNSName("localhost"), x509.DNSName("*.table.localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    usage = x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
