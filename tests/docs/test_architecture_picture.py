"""The drawing of the architecture shows the packages and imports of the source tree, and boxes, labels and arrows do not overlap."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import pairwise
from types import ModuleType

import pytest
from docs.make_trusted_base import WHY

from tests.docs.pages import ROOT

IMAGES = ROOT / "docs" / "images"
_LINES = re.compile(r">([\d,]+) lines<")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, IMAGES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


layered = _script("layered")
make_architecture = _script("make_architecture")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_that_of_the_import_graph(theme: str) -> None:
    shown, now = (IMAGES / f"architecture-{theme}.svg").read_text(encoding="utf-8"), make_architecture.pictures()[theme]
    assert _LINES.sub("> lines<", shown) == _LINES.sub("> lines<", now), "run: python docs/images/make_architecture.py"


def test_the_sizes_in_the_picture_are_about_right() -> None:
    """Exact figures would be wrong every day; a third off, or 200 lines in a small package, is out of date."""
    shown, now = (
        [int(number.replace(",", "")) for number in _LINES.findall(text)]
        for text in ((IMAGES / "architecture-light.svg").read_text(encoding="utf-8"), make_architecture.pictures()["light"])
    )
    assert len(shown) == len(now) > 10
    assert [pair for pair in zip(shown, now, strict=True) if abs(pair[0] - pair[1]) > max(200, pair[1] / 3)] == []


def test_arrows_that_follow_from_others_are_left_out_and_those_of_a_statement_are_kept() -> None:
    edges = frozenset([("curator", "sql"), ("sql", "kernel"), ("curator", "kernel"), ("interfaces", "curator"), ("interfaces", "kernel")])
    assert make_architecture.without_what_follows(edges) == {("curator", "sql"), ("sql", "kernel"), ("interfaces", "curator")}
    assert make_architecture.shown_edges(edges) == make_architecture.without_what_follows(edges) | {("curator", "kernel")}


def test_every_arrow_points_down_and_passes_no_box() -> None:
    edges = make_architecture.shown_edges(make_architecture.imports_between_packages())
    layout = layered.arrange(sorted(make_architecture.PACKAGES), edges, box=(make_architecture.BOX, make_architecture.HIGH))
    boxes = [(x, y, x + make_architecture.BOX, y + make_architecture.HIGH) for x, y in layout.places.values()]
    for points in layout.ways.values():
        assert all(upper[1] < lower[1] for upper, lower in pairwise(points))
        for x, y in points[1:-1]:
            assert not any(left - 5 < x < right + 5 and top <= y <= bottom for left, top, right, bottom in boxes)
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert one[2] + 10 < other[0] or other[2] + 10 < one[0] or one[3] < other[1] or other[3] < one[1]


def test_the_page_has_every_package() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("## Packages in one sentence each") :]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == make_architecture.packages_of_the_tree()


def test_packages_in_which_a_mistake_could_leak_are_those_of_the_trusted_base() -> None:
    trusted = {name for name, package in make_architecture.PACKAGES.items() if package.kind == "trusted"}
    assert trusted == {place.partition("/")[0] for place in WHY}
