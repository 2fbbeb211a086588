"""Identity: a key pair of one peer; its name is the hash of the public key, and TLS proves that it holds the key."""

import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import NameOID

from discretion.errors import InvalidDeclaration, PeerRefused

FILE = "identity.pem"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The private key of a peer, and where its certificate is. The file is readable by its owner only."""

    key: Ed25519PrivateKey
    path: Path

    @classmethod
    def open(cls, folder: Path) -> "Identity":
        """Return the identity kept in `folder`, made at the first opening."""
        path = folder / FILE
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _create(path)
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidDeclaration(f"{str(path)!r} is not the identity of a peer. Restore it, or use another folder.")
        return cls(key=key, path=path)

    @property
    def public(self) -> bytes:
        """The public key, as it is sent."""
        return _encoded(self.key.public_key())

    @property
    def name(self) -> str:
        """The name of this peer: the hash of its public key."""
        return name_of(self.public)

    def sign(self, text: bytes) -> bytes:
        return self.key.sign(text)

    def server_context(self) -> ssl.SSLContext:
        """Return the settings of the listening side: TLS 1.3 with this identity."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.path)
        return context


def client_context() -> ssl.SSLContext:
    """Return the settings of the dialling side. No authority is asked: who answers is checked by `answering`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def answering(certificate: bytes | None) -> str:
    """Return the name of the peer whose certificate TLS received: the handshake proved that it holds the key."""
    try:
        key = x509.load_der_x509_certificate(certificate or b"").public_key()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise PeerRefused("The other side has no identity of a peer. Check the address.")
    return name_of(_encoded(key))


def verify(public: bytes, signature: bytes, text: bytes) -> str:
    """Return the name of the peer that signed `text`, or raise PeerRefused."""
    try:
        key = serialization.load_der_public_key(public)
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError
        key.verify(signature, text)
    except (ValueError, UnsupportedAlgorithm, InvalidSignature):
        raise PeerRefused("The other side could not prove its identity.") from None
    return name_of(_encoded(key))


def name_of(public: bytes) -> str:
    """Return the name that belongs to a public key."""
    return sha256(public).hexdigest()


def _encoded(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _create(path: Path) -> None:
    """Write a new key and a certificate that it signed itself."""
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "discretion peer")])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .sign(key, None)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private + certificate.public_bytes(serialization.Encoding.PEM))
    unfinished.rename(path)  # a crash leaves no half identity
