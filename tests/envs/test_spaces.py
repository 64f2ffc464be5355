import json
import pickle
import time

import pytest
from gymnasium.spaces import Tuple
from gymnasium.vector.utils import batch_space, create_shared_memory

from gagar_env.spaces import MAX_SAMPLE_CHARS, UnicodeText


@pytest.mark.parametrize("text", ["", "a\nb\tc", "é😀", "\x00", "\udcff", "x" * 3_000_000])
def test_gym_1_every_text_belongs(text):
    assert text in UnicodeText()


@pytest.mark.parametrize("thing", [None, 3, b"bytes", ["a"]])
def test_only_text_belongs(thing):
    assert thing not in UnicodeText()


def test_bounds_are_inclusive():
    space = UnicodeText(3, min_length=2)
    assert [text in space for text in ("a", "ab", "abc", "abcd")] == [False, True, True, False]


def test_membership_does_not_look_at_the_characters():
    space, short, long = UnicodeText(), "a", "é" * 50_000_000

    def cost(text):
        started = time.thread_time()  # a busy machine takes its turns from the clock on the wall
        for _ in range(1000):
            assert text in space
        return time.thread_time() - started

    cost(short)
    assert cost(long) < 50 * cost(short) + 0.05


def test_samples_are_seeded_short_printable_and_encodable():
    space, twin = UnicodeText(seed=3), UnicodeText(seed=3)
    samples = [space.sample() for _ in range(200)]
    assert samples == [twin.sample() for _ in range(200)]
    assert all(text in space and len(text) <= MAX_SAMPLE_CHARS and text.isprintable() for text in samples)
    assert not any(char.isascii() and not (char.isdigit() or char == " ") for char in "".join(samples))
    "".join(samples).encode()
    assert len(set(samples)) > 150


def test_samples_keep_the_bounds():
    assert all(5 <= len(UnicodeText(9, min_length=5, seed=i).sample()) <= 9 for i in range(30))
    assert len(UnicodeText(min_length=100, seed=0).sample()) == 100


def test_sample_takes_no_mask():
    with pytest.raises(ValueError, match="no mask"):
        UnicodeText().sample(mask=[1])


@pytest.mark.parametrize(("low", "high"), [(-1, 5), (3, 2)])
def test_bad_bounds_are_refused(low, high):
    with pytest.raises(ValueError, match="0 <= min <= max"):
        UnicodeText(high, min_length=low)


def test_equality_pickle_and_repr():
    space = UnicodeText(10, min_length=1, seed=5)
    again = pickle.loads(pickle.dumps(space))
    assert again == space
    assert again.sample() == space.sample()
    assert space != UnicodeText(10)
    assert space != Tuple([])
    assert repr(space) == "UnicodeText(max_length=10, min_length=1)"


def test_jsonable_round_trip():
    texts = ["", "a\n\x00", "😀"]
    space = UnicodeText()
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(texts)))) == texts


def test_it_has_no_fixed_size():
    assert not UnicodeText().is_np_flattenable
    assert UnicodeText().shape is None


def test_batched_space_holds_tuples_of_texts():
    space = batch_space(UnicodeText(), 3)
    assert ("a", "", "é\n") in space
    assert space.sample() in space


def test_vec_1_shared_memory_is_refused_with_the_cure():
    with pytest.raises(Exception, match="shared_memory=False"):
        create_shared_memory(UnicodeText(), n=2)
