import pytest

from discretion.errors import PeerRefused
from discretion.noise import simulation
from discretion.peers.product import Keys, masked_product

KEYS = Keys.generate(512)


def test_the_sum_of_products_and_noise_is_what_the_owner_of_the_key_reads():
    rng = simulation(1)
    for size in (1, 2, 30):
        x, y = rng.integers(0, 1001, (2, size)).tolist()
        for noise in (0, 7, -(10**9)):
            masked = masked_product(KEYS.modulus, KEYS.encrypt(x), y, noise)
            assert sum(a * b for a, b in zip(x, y, strict=True)) + noise == KEYS.decrypt(masked)


def test_quick_encryption_gives_what_the_library_gives():
    for value in (0, 1, 1_000):
        assert value == KEYS.private.raw_decrypt(KEYS.encrypt([value])[0])
        assert value == KEYS.decrypt(KEYS.private.public_key.raw_encrypt(value))


def test_equal_numbers_are_encrypted_differently_and_answers_are_blinded():
    assert 20 == len(set(KEYS.encrypt([1] * 20)))
    vector = KEYS.encrypt([1, 0, 1])
    assert 20 == len({masked_product(KEYS.modulus, vector, [1000, 0, 0], 3) for _ in range(20)})


def test_the_random_part_of_an_answer_says_nothing_about_the_weights():
    """The owner of the key can compute the random part of an answer. Without fresh blinding it would be ∏ s_i^y_i."""
    n, vector = KEYS.modulus, KEYS.encrypt([0, 0])
    masked = masked_product(n, vector, [3, 1], 0)
    unblinded = pow(vector[0], 3, n * n) * vector[1] % (n * n)
    assert masked != unblinded
    assert KEYS.decrypt(masked) == KEYS.decrypt(unblinded) == 0


@pytest.mark.parametrize("value", [0, -1, KEYS.modulus**2], ids=["zero", "negative", "too large"])
def test_numbers_outside_the_group_are_refused(value):
    with pytest.raises(PeerRefused, match="not encrypted"):
        KEYS.decrypt(value)


def test_sums_that_no_comparison_gives_are_refused():
    with pytest.raises(PeerRefused, match="no comparison can give"):
        KEYS.decrypt(masked_product(KEYS.modulus, KEYS.encrypt([1]), [1], 2**70))
    with pytest.raises(PeerRefused, match="not encrypted under its key"):
        masked_product(KEYS.modulus, [0], [1], 0)
    with pytest.raises(PeerRefused, match="not encrypted under its key"):
        masked_product(KEYS.modulus, [KEYS.private.p], [1], 0)
