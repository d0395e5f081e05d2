"""Regular expressions over public text: a small part of RE2's syntax, matched by running all threads at once.

There is no backtracking, so time is at most the length of the pattern times that of the text, whatever an analyst writes. Of several
matches the leftmost counts, and among those the one that a search with backtracking would find first, as in RE2 and Perl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

PATTERN_MAX = 500
"""Longest pattern."""
STEPS_MAX = 2_000
"""Most steps of a program, with repetitions expanded."""
REPEATS_MAX = 100

Test: TypeAlias = Callable[[str], bool]
Spans: TypeAlias = tuple[int | None, ...]
"""Start and end of the match, then of each group."""

_DIGIT = frozenset("0123456789")
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_SPACE = frozenset("\t\n\f\r ")
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_ESCAPED = frozenset("\\.+*?()|[]{}^$-/ '\"%_#&~@!,:;<>=")


class Unreadable(ValueError):
    """A pattern that is not supported."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program: ``test`` one character, ``at`` the start or end, ``save`` a place, or continue at each of ``then``."""

    test: Test | None = None
    at: str = ""
    save: int | None = None
    then: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled pattern; ``groups`` is the number of groups in brackets."""

    steps: tuple[Step, ...]
    groups: int

    def search(self, text: str, start: int, *, full: bool, spend: Callable[[int], None]) -> Spans | None:
        """The leftmost match from ``start`` on, or of the whole text from there; ``spend`` is called with the amount of work."""
        threads: list[tuple[int, Spans]] = []
        found: Spans | None = None
        for place in range(start, len(text) + 1):
            spend(len(threads) + 1)
            seen: set[int] = set()
            entered: list[tuple[int, Spans]] = []
            for number, spans in threads:
                self._enter(number, spans, place, len(text), seen, entered)
            if found is None and (place == start or not full):
                self._enter(0, (None,) * (2 * self.groups + 2), place, len(text), seen, entered)
            threads = []
            for number, spans in entered:
                step = self.steps[number]
                if step.test is None:  # the end of the program
                    if not full or place == len(text):
                        found = spans
                        break
                elif place < len(text) and step.test(text[place]):
                    threads.append((number + 1, spans))
            if not threads and (found is not None or (full and place > start)):
                break
        return found

    def _enter(self, first: int, spans: Spans, place: int, end: int, seen: set[int], entered: list[tuple[int, Spans]]) -> None:
        """Follow steps that consume no character, each once for a place, in the order of their priority."""
        waiting = [(first, spans)]
        while waiting:
            number, spans = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            step = self.steps[number]
            if step.save is not None:
                waiting.append((number + 1, (*spans[: step.save], place, *spans[step.save + 1 :])))
            elif step.at:
                if place == (0 if step.at == "start" else end):
                    waiting.append((number + 1, spans))
            elif step.then:
                waiting += [(following, spans) for following in reversed(step.then)]
            else:
                entered.append((number, spans))


def compiled(pattern: str, *, any_case: bool = False) -> Program:
    """The program of a pattern, or ``Unreadable``."""
    if len(pattern) > PATTERN_MAX:
        raise Unreadable(f"a pattern may have at most {PATTERN_MAX} characters")
    reader = _Reader(pattern, any_case)
    body = reader.either()
    if reader.at < len(pattern):
        raise Unreadable("a bracket is closed that was not opened")
    steps = [Step(save=0), *_moved(body, 1), Step(save=1), Step()]
    if len(steps) > STEPS_MAX:
        raise Unreadable("the pattern is too long once repetitions are expanded")
    return Program(tuple(steps), reader.groups)


def _moved(steps: list[Step], by: int) -> list[Step]:
    """The steps of a part, whose targets are relative to its start, with their targets shifted."""
    return [Step(step.test, step.at, step.save, tuple(number + by for number in step.then)) for step in steps]


class _Reader:
    """Reads a pattern from left to right, each part as steps that start at 0 and end behind their last."""

    def __init__(self, pattern: str, any_case: bool) -> None:
        self.pattern, self.any_case, self.at, self.groups, self.depth = pattern, any_case, 0, 0, 0

    def _next(self) -> str:
        if self.at == len(self.pattern):
            raise Unreadable("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _takes(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def either(self) -> list[Step]:
        """Parts with | between them."""
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())
        whole = parts[-1]
        for part in reversed(parts[:-1]):
            end = 2 + len(part) + len(whole)
            whole = [Step(then=(1, 2 + len(part))), *_moved(part, 1), Step(then=(end,)), *_moved(whole, 2 + len(part))]
        return whole

    def _sequence(self) -> list[Step]:
        steps: list[Step] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            steps += _moved(self._repeated(), len(steps))
            if len(steps) > STEPS_MAX:
                raise Unreadable("the pattern is too long once repetitions are expanded")
        return steps

    def _repeated(self) -> list[Step]:
        part = self._single()
        if self.at == len(self.pattern) or self.pattern[self.at] not in "*+?{":
            return part
        sign = self._next()
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or self._counts()
        lazy = self._takes("?")
        if self.at < len(self.pattern) and self.pattern[self.at] in "*+?{":
            raise Unreadable("a repetition cannot be repeated without brackets")
        if _may_be_nothing(part):
            raise Unreadable("a part that may be empty cannot be repeated")
        if len(part) * max(least, most or 1, 1) > STEPS_MAX:
            raise Unreadable("the pattern is too long once repetitions are expanded")
        steps: list[Step] = []
        for _ in range(least):
            steps += _moved(part, len(steps))
        if most is None:
            loop = [_choice(1, len(part) + 2, lazy=lazy), *_moved(part, 1), Step(then=(0,))]
            return steps + _moved(loop, len(steps))
        rest: list[Step] = []
        for _ in range(most - least):
            inside = [*part, *_moved(rest, len(part))]
            rest = [_choice(1, len(inside) + 1, lazy=lazy), *_moved(inside, 1)]
        return steps + _moved(rest, len(steps))

    def _counts(self) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.at)
        written = self.pattern[self.at : end] if end >= 0 else ""
        low, comma, high = written.partition(",")
        if not (low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit())) and len(written) <= 7):
            raise Unreadable("write a number of repetitions as {2}, {2,} or {2,5}")
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if least > REPEATS_MAX or (most is not None and not least <= most <= REPEATS_MAX):
            raise Unreadable(f"a part may be repeated at most {REPEATS_MAX} times")
        return least, most

    def _single(self) -> list[Step]:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return [Step(test=self._bracketed())]
            case ".":
                return [Step(test=lambda character: character != "\n")]
            case "^" | "$":
                return [Step(at="start" if letter == "^" else "end")]
            case "\\":
                return [Step(test=self._escaped())]
            case "*" | "+" | "?" | "{":
                raise Unreadable("there is nothing to repeat")
            case _:
                return [Step(test=self._one_of(frozenset(letter)))]

    def _group(self) -> list[Step]:
        self.depth += 1
        if self.depth > 50:
            raise Unreadable("brackets are nested too deeply")
        number = None
        if not self._takes("?:"):
            if self._takes("?"):
                raise Unreadable("brackets that start with ? are not supported")
            self.groups += 1
            number = self.groups
        inside = self.either()
        if not self._takes(")"):
            raise Unreadable("a bracket is not closed")
        self.depth -= 1
        return inside if number is None else [Step(save=2 * number), *_moved(inside, 1), Step(save=2 * number + 1)]

    def _one_of(self, characters: frozenset[str]) -> Test:
        if not self.any_case:
            return lambda character: character in characters
        folded = {form for character in characters for form in (character, character.lower(), character.upper())}
        return lambda character: character in folded

    def _escaped(self) -> Test:
        letter = self._next()
        if letter.lower() in _CLASSES:
            known = _CLASSES[letter.lower()]
            return (lambda character: character in known) if letter.islower() else (lambda character: character not in known)
        return self._one_of(frozenset(self._plain(letter)))

    @staticmethod
    def _plain(letter: str) -> str:
        if letter in "tn":
            return {"t": "\t", "n": "\n"}[letter]
        if letter not in _ESCAPED:
            raise Unreadable("this escape sequence is not supported")
        return letter

    def _bracketed(self) -> Test:
        negated, singles, ranges = self._takes("^"), set[str](), list[tuple[str, str]]()
        first = True
        while first or not self._takes("]"):
            letter, first = self._next(), False
            if letter == "[":
                raise Unreadable("[ inside [ ] needs a backslash")
            if letter == "\\":
                letter = self._next()
                if letter in _CLASSES:
                    singles |= _CLASSES[letter]
                    continue
                letter = self._plain(letter)
            if self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._next()
                last = self._plain(self._next()) if last == "\\" else last
                if last == "[" or last < letter:
                    raise Unreadable("a range in [ ] must be in ascending order")
                ranges.append((letter, last))
            else:
                singles.add(letter)

        def holds(character: str) -> bool:
            return character in singles or any(low <= character <= high for low, high in ranges)

        if self.any_case:
            return lambda character: any(map(holds, {character, character.lower(), character.upper()})) is not negated
        return lambda character: holds(character) is not negated


def _may_be_nothing(part: list[Step]) -> bool:
    """Whether steps can match the empty text: engines differ in what a repetition of such steps means."""
    waiting, seen = [0], set[int]()
    while waiting:
        number = waiting.pop()
        if number == len(part):
            return True
        if number not in seen and part[number].test is None:
            seen.add(number)
            waiting += part[number].then or (number + 1,)
    return False


def _choice(inside: int, beyond: int, *, lazy: bool) -> Step:
    return Step(then=(beyond, inside) if lazy else (inside, beyond))
