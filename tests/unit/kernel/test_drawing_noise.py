"""Draws of noise follow the law exactly: checked in integers over all random numbers, not by drawing (docs/proofs/drawing-noise.md)."""

from __future__ import annotations

import ast
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from lapwing.kernel.laws import SCALE_MAX, SCALE_MIN, DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.noise import bernoulli, entropy, vectors
from lapwing.kernel.noise.envelope import WORD_BITS, WORDS, Envelope, envelope
from tests.meta.tree import SOURCE, python_files
from tests.unit.kernel.envelope_checks import CHECKS, Script, chance, scripted

SCALES = (
    Fraction(1, 1024),
    Fraction(1),
    Fraction(float.fromhex("0x1.d333333333333p2")),
    Fraction(32),
    Fraction(float.fromhex("0x1.91eb851eb851fp7")),
    Fraction(10**6),
    Fraction(float.fromhex("0x1.d1a94a2000001p39")),
    SCALE_MAX,
)
LAWS: tuple[Law, ...] = tuple(make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SCALES)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_law_is_exact(law: Law, check: Callable[[Envelope], None]) -> None:
    check(envelope(law))


@pytest.mark.parametrize("law", [law for law in LAWS if law.scale >= 1], ids=str)
def test_hardly_anything_is_left_open(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or millions of draws a second would not be reached. About one proposal in 5,000 at the worst scales, and hardly ever three."""
    settled, calls = vectors.settled, list[int]()

    def counted(shape: Envelope, cell: int, rest: int, v: int) -> int | None:
        calls.append(cell)
        return settled(shape, cell, rest, v)

    monkeypatch.setattr(vectors, "settled", counted)
    vectors.draw_noise(law, 200_000)
    assert len(calls) < 120


def test_no_bound_overflows() -> None:
    """Over all binary orders of scales, and the scales just below and above, the largest product of the quick bounds fits 63 bits."""
    for exponent in range(-20, 57):
        for scale in (Fraction(2) ** exponent, Fraction(2**exponent * (2 - 2**-52)) if exponent < 56 else SCALE_MAX):
            for make in (DiscreteLaplace, DiscreteGaussian):
                shape = envelope(make(scale))
                most = np.array([shape.cells + 1], dtype=np.int64)
                offset = np.array([min(1 << shape.width_bits, 1 << 16)], dtype=np.int64)
                assert int(shape.growth(most, offset)[0]) * shape.slope_upper < 2**63
                assert (shape.cells + 2) << shape.width_bits < vectors.SMALL_MAX
    envelope.cache_clear()


def test_a_draw_that_needs_more_than_64_bits_is_a_python_integer() -> None:
    """Nothing is cut off and nothing wraps around: beyond the cells blocks go on for as long as coins fall so."""
    shape = envelope(DiscreteLaplace(SCALE_MAX))
    beyond = int(shape.weights[: shape.cells].sum())
    block = 150
    z = (shape.cells << shape.width_bits) + (block << shape.beyond_bits) + 5
    assert z > 2**63 and chance(shape, z) > Fraction(1, 2**400)
    for negative in (0, 1):
        stream = [(beyond, 64), (negative << 63 | 3, 64), *[(1, 1)] * block, (0, 1), (5, shape.beyond_bits), *[(0, 64)] * 10]
        drawn = scripted(Script(stream), vectors._batch, shape, 1).tolist()
        assert drawn == [-z if negative else z] and type(drawn[0]) is int


def test_more_bits_are_drawn_until_v_is_decided() -> None:
    """V equal to the chance for 32 + 64 n bits needs n + 1 more words; a law of scale 1000 leaves some proposals open."""
    shape = envelope(DiscreteGaussian(Fraction(1000)))
    z = (40 << shape.width_bits) + 3
    for words in range(4):
        bits = WORD_BITS + 64 * words
        number = int(chance(shape, z) * 2**bits)
        script = Script([(number >> shift & (2**64 - 1), 64) for shift in range(bits - WORD_BITS - 64, -1, -64)] + [(0, 64)])
        assert scripted(script, vectors.settled, shape, 40, 3, number >> (bits - WORD_BITS)) == z
        assert script._left == []


def test_every_number_asked_for_is_drawn() -> None:
    for law in (DiscreteLaplace(SCALE_MIN), DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(10**6))):
        for number in (0, 1, 2, 17, 1_000, vectors.BATCH_MAX + 1):
            drawn = vectors.draw_noise(law, number)
            assert len(drawn) == number and drawn.dtype == np.int64


def test_threads_draw_different_values() -> None:
    law = DiscreteLaplace(Fraction(2**55))
    drawn: list[list[int]] = []
    threads = [threading.Thread(target=lambda: drawn.append(vectors.draw_noise(law, 5_000).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [abs(value) for part in drawn for value in part]
    assert len(values) == 40_000 and len(set(values)) == 40_000  # two of them are equal with a chance below 2^-24


def parsed(directory: Path) -> Iterator[tuple[str, ast.AST]]:
    for path in python_files(directory):
        name = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield name, node


ENTROPY = "kernel/noise/entropy.py"


@pytest.mark.slow
def test_the_product_has_one_source_of_random_bytes_and_no_way_to_replace_it() -> None:
    """Bytes for noise come from ``entropy``, which alone asks the operating system; what names its function calls it."""
    asks = {name for name, node in parsed(SOURCE / "kernel") if isinstance(node, ast.Attribute) and node.attr == "urandom"}
    assert asks == {ENTROPY}
    imports = {
        (name, alias.name)
        for name, node in parsed(SOURCE / "kernel" / "noise")
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in {"os", "secrets", "random"}
    }
    assert imports == {(ENTROPY, "os")}
    tree = list(parsed(SOURCE))
    called = [
        name
        for name, node in tree
        if isinstance(node, ast.Call) and "random_bytes" in (getattr(node.func, "attr", None), getattr(node.func, "id", None))
    ]
    named = [
        (name, ast.unparse(node))
        for name, node in tree
        if (isinstance(node, ast.Attribute) and node.attr == "random_bytes")
        or (isinstance(node, ast.Name) and node.id == "random_bytes")
        or (isinstance(node, ast.Constant) and node.value == "random_bytes")
    ]
    assert named == [(ENTROPY, "random_bytes"), *[("kernel/noise/vectors.py", "entropy.random_bytes")] * 2]
    assert called == [name for name, _ in named]


@pytest.mark.unseeded("counts the bytes that the operating system is asked for")
def test_noise_and_coins_ask_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", counted)
    assert vectors.draw_noise(DiscreteLaplace(Fraction(10)), 10).tolist() == [0] * 10
    assert sum(asked) > 10 * 8
    asked.clear()
    assert entropy.random_below(1_000) == 0 and entropy.random_bits(20) == 0 and bernoulli.coin(Fraction(1, 2))
    assert asked == [2, 3, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 200, 256, 257])
def test_a_number_below_a_size_is_the_first_of_as_many_bits_that_is(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of so many bits has the same chance, so each number below the size has: every number is reached by as many bytes."""
    bits = (size - 1).bit_length()
    reached: dict[int, int] = {}
    for number in range(256 ** -(-bits // 8)):
        given = iter([number.to_bytes(-(-bits // 8), "little")])
        monkeypatch.setattr(entropy, "random_bytes", lambda _size, given=given: next(given))
        with contextlib.suppress(StopIteration):  # it asked for another number
            found = entropy.random_below(size)
            reached[found] = reached.get(found, 0) + 1
    assert sorted(reached) == list(range(size)) and len(set(reached.values())) == 1


def test_words_are_read_as_the_proof_says() -> None:
    """The low half of a word chooses the cell, the high half is V; the highest bit of the other word is the sign."""
    shape = envelope(DiscreteLaplace(Fraction(5)))
    stream = [(int(shape.weights[0]), 64), (1 << 31, 32)]
    assert scripted(Script(stream), vectors._batch, shape, 1).tolist() == [-1]
    stream = [((WORDS - 1) << WORD_BITS | int(shape.weights[0]), 64), (1 << 31, 32)]
    assert scripted(Script(stream), vectors._batch, shape, 1).tolist() in ([], [-1])
