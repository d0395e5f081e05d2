"""Rows of made-up page views in the shape of a well-known web analytics benchmark. Our own generator, from a fixed seed.

Every value lies inside what ``hits.toml`` declares and no user has more rows than it allows.
"""

from __future__ import annotations

import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 43
HITS_PER_USER_MAX = 300
FIRST_DAY = datetime.datetime(2013, 7, 1)
SECONDS = 31 * 86_400

SECTIONS = ("news", "shop", "help", "maps")
SUBJECTS = ("trains", "google", "garden", "weather", "cooking", "football", "cinema", "holidays", "cars", "music")
PHRASES = ("", "train times", "weather tomorrow", "cinema", "used cars", "recipes", "football results", "cheap holidays", "guitar chords")
MODELS = ("", "One", "One Plus", "Slate", "Slate Mini", "Pebble")
HOSTS = ("", "http://search.example/?q=", "https://www.google.example/search/", "http://blog.example/post/", "https://news.example/")
WIDTHS = np.array([320, 768, 1024, 1280, 1366, 1600, 1920])
HEIGHTS = np.array([480, 600, 768, 900, 1080])
PAGES = tuple(f"http://site.example/{section}/{subject}" for section in SECTIONS for subject in SUBJECTS)
TITLES = tuple(f"{subject.capitalize()} - {section}" for section in SECTIONS for subject in SUBJECTS)

Ints = npt.NDArray[np.int64]


def all_tables(users: int) -> dict[str, pa.Table]:
    """Every table by name. The same number of users gives the same rows."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    many = np.clip(rng.lognormal(1.9, 0.9, users), 1, HITS_PER_USER_MAX).astype(np.int64)
    of = np.repeat(np.arange(users), many)
    return {
        "hits": _hits(rng, of, users),
        "pages": pa.table({"url": list(PAGES), "section": [section for section in SECTIONS for _ in SUBJECTS]}),
        "titles": pa.table({"title": list(TITLES)}),
    }


def _hits(rng: np.random.Generator, of: Ints, users: int) -> pa.Table:
    count = len(of)
    # What belongs to a user is drawn once for each, and what belongs to a view once for each view.
    region, address = _skewed(rng, 250, users) + 1, rng.integers(0, 2**32, users)
    width, height = rng.choice(WIDTHS, users), rng.choice(HEIGHTS, users)
    phone = np.where(rng.random(users) < 0.25, rng.integers(1, 6, users), 0)
    moment = rng.integers(0, SECONDS, count)
    page, phrase = _skewed(rng, len(PAGES), count), _skewed(rng, len(PHRASES), count)
    host = np.where(phrase > 0, rng.integers(1, 3, count), rng.choice([0, 3, 4], count))
    return pa.table(
        {
            "watch_id": rng.permutation(count).astype(np.int64) + 10**12,
            "user_id": of + 435_090_932_899,
            "event_date": pa.array(moment // 86_400 + _epoch_days(), pa.int32()).cast(pa.date32()),
            "event_time": pa.array(moment + 86_400 * _epoch_days(), pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp("us")),
            "counter_id": _skewed(rng, 80, count) + 1,
            "region_id": region[of],
            "client_ip": address[of],
            "adv_engine_id": np.where(rng.random(count) < 0.1, rng.integers(1, 21, count), 0),
            "search_engine_id": np.where(phrase > 0, rng.integers(1, 5, count), 0),
            "search_phrase": [PHRASES[number] for number in phrase],
            "url": [PAGES[number] for number in page],
            "title": [TITLES[number] for number in page],
            "referer": [HOSTS[number] and f"{HOSTS[number]}{item}" for number, item in zip(host, page, strict=True)],
            "traffic_source_id": np.where(phrase > 0, 2, rng.integers(-1, 7, count)),
            "resolution_width": width[of],
            "window_client_width": width[of] - rng.integers(0, 3, count) * 10,
            "window_client_height": height[of] - rng.integers(0, 3, count) * 10,
            "mobile_phone": phone[of],
            "mobile_phone_model": [MODELS[number] for number in phone[of]],
            "is_refresh": _rarely(rng, 0.1, count),
            "is_link": _rarely(rng, 0.2, count),
            "is_download": _rarely(rng, 0.05, count),
            "dont_count_hits": _rarely(rng, 0.1, count),
        }
    )


def _skewed(rng: np.random.Generator, many: int, count: int) -> Ints:
    """Numbers below ``many``, small ones more often."""
    weights = 1.0 / np.arange(1, many + 1)
    numbers: Ints = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(count))
    return np.minimum(numbers, many - 1)


def _rarely(rng: np.random.Generator, share: float, count: int) -> Ints:
    return (rng.random(count) < share).astype(np.int64)


def _epoch_days() -> int:
    return (FIRST_DAY - datetime.datetime(1970, 1, 1)).days
