"""Product: the scalar product of two private vectors by Paillier's additively homomorphic encryption.

One side encrypts its vector x under a key of its own. The other side computes an encryption of Σ x_i y_i + noise, with
noise that protects y, and blinds it afresh, so that only this sum can be read from it. Both sides are assumed to follow
the protocol (semi-honest); docs/peers.md says what each of them learns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gmpy2  # type: ignore[import-untyped]
from phe import paillier  # type: ignore[import-untyped]

from discretion.errors import PeerRefused

SHIFT = 1_024  # added to every exponent, so that all have eleven bits whatever the weight
LARGEST_SUM = 2**62  # of a decrypted sum


@dataclass(frozen=True, kw_only=True)
class Keys:
    """A key pair. Whoever encrypts with it also holds the factors, which makes encryption several times faster."""

    private: Any

    @classmethod
    def generate(cls, bits: int) -> "Keys":
        return cls(private=paillier.generate_paillier_keypair(n_length=bits)[1])

    @property
    def modulus(self) -> int:
        return int(self.private.public_key.n)

    def encrypt(self, values: Sequence[int]) -> list[int]:
        """Return (1 + v·n)·s mod n² for each value, s a uniform n-th residue.

        Modulo p² the n-th residues are the p-th powers, because q and p − 1 are coprime: r^p for a uniform r is
        a uniform one. The exponent has half the bits of n and the modulus half the bits of n².
        """
        n, p, q = (gmpy2.mpz(x) for x in (self.modulus, self.private.p, self.private.q))
        square, inverse = n * n, gmpy2.invert(p * p, q * q)
        encrypted = []
        for value in values:
            draw = self.private.public_key.get_random_lt_n
            a, b = gmpy2.powmod(draw(), p, p * p), gmpy2.powmod(draw(), q, q * q)
            residue = a + p * p * ((b - a) * inverse % (q * q))
            encrypted.append(int((1 + value * n) * residue % square))
        return encrypted

    def decrypt(self, value: int) -> int:
        """Return the signed number inside, which must be a plausible sum."""
        if not 0 < value < self.modulus**2:
            raise PeerRefused("The other side sent a number that is not encrypted under the key of this peer.")
        plain = int(self.private.raw_decrypt(value))
        signed = plain - self.modulus if plain > self.modulus // 2 else plain
        if abs(signed) > LARGEST_SUM:
            raise PeerRefused("The other side sent an encrypted number that no comparison can give.")
        return signed


def masked_product(modulus: int, values: Sequence[int], weights: Sequence[int], noise: int) -> int:
    """Return a fresh encryption of Σ value_i · weight_i + noise for the owner of the key."""
    n = gmpy2.mpz(modulus)
    square = n * n
    total = every = gmpy2.mpz(1)
    for value, weight in zip(values, weights, strict=True):
        total = total * gmpy2.powmod(value, weight + SHIFT, square) % square
        every = every * value % square
    if gmpy2.gcd(every, n) != 1:
        raise PeerRefused("The other side sent numbers that are not encrypted under its key.")
    total = total * gmpy2.powmod(every, -SHIFT, square) % square
    blind = gmpy2.powmod(paillier.PaillierPublicKey(modulus).get_random_lt_n(), n, square)
    return int(total * (1 + noise * n) * blind % square)
