"""Runs logical clients one at a time, from one of their steps to the next, in an order that the scheduler chooses.

Each client is a function in a thread of its own. It stops at every step until it is chosen, so at any time exactly one of them runs and the
order of the steps is the only thing that is left open. ``explore`` goes through all orders (or all with few switches), ``sample``
through some. An order is replayed by its list of choices.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

STEP_SECONDS_MAX = 300.0
"""No step takes as long; one that does is reported, and the schedule with it."""


class Died(BaseException):
    """The client is gone, at this step: nothing of it is done any more, not even cleaning up."""


@dataclass
class Client:
    """One client: what the scheduler knows about it, and ``step``, which its program calls."""

    name: str
    program: Callable[[Client], None]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    parked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: bool = False
    error: BaseException | None = None
    at: str = ""

    def step(self, label: str) -> None:
        """Let others go first, as many of their steps as the scheduler likes."""
        self.at = label
        self.parked.release()
        assert self.go.acquire(timeout=2 * STEP_SECONDS_MAX), "the scheduler is gone"

    def live(self) -> None:
        """The thread of the client."""
        try:
            self.program(self)
        except Died:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.done = True
            self.parked.release()


@dataclass(frozen=True)
class Choice:
    """Who could have gone on, and which of them did."""

    able: tuple[str, ...]
    chosen: int


Programs = Mapping[str, Callable[[Client], None]]
Chooser = Callable[[int, tuple[str, ...]], int]
"""From the number of choices before and who is able: which."""


def run(programs: Programs, choose: Chooser, *, switches_max: int | None = None) -> list[Choice]:
    """One schedule, to its end. An error of a client that it did not expect is raised.

    ``switches_max``: how often a client that could go on is left waiting for another. Most mistakes need one or two such switches
    (Musuvathi and Qadeer, 2007), and their number grows slowly with the number of steps.
    """
    clients = {name: Client(name, program) for name, program in programs.items()}
    threads = [threading.Thread(target=client.live, daemon=True) for client in clients.values()]
    for thread, client in zip(threads, clients.values(), strict=True):
        # Each goes to its first step: what comes before that touches nothing that others could see.
        thread.start()
        assert client.parked.acquire(timeout=STEP_SECONDS_MAX), f"{client.name} hangs before its first step"
    choices: list[Choice] = []
    switches, last = 0, ""
    while able := tuple(name for name, client in clients.items() if not client.done):
        if switches_max is not None and switches == switches_max and last in able:
            able = (last,)
        chosen = choose(len(choices), able)
        choices.append(Choice(able, chosen))
        switches += last in able and able[chosen] != last
        last = able[chosen]
        clients[last].go.release()
        if not clients[last].parked.acquire(timeout=STEP_SECONDS_MAX):
            raise AssertionError(f"{last} hangs at {clients[last].at!r} after {order_of(choices)}")
    for thread in threads:
        thread.join(STEP_SECONDS_MAX)
    for client in clients.values():
        if client.error is not None:
            raise client.error
    return choices


def order_of(choices: list[Choice]) -> str:
    """The schedule as the names of who went, for a message."""
    return " ".join(choice.able[choice.chosen] for choice in choices)


def explore(
    make: Callable[[], Programs], check: Callable[[str], None], *, switches_max: int | None = None, schedules_max: int = 100_000
) -> int:
    """Every schedule there is, depth first; how many there were. ``check`` is called after each with its order.

    The programs are made anew for each. Whoever is able after the same choices must be the same each time.
    """
    prefix: list[int] = []
    for count in range(1, schedules_max + 1):
        wanted = prefix

        def choose(index: int, able: tuple[str, ...], wanted: list[int] = wanted) -> int:
            return wanted[index] if index < len(wanted) else 0

        choices = run(make(), choose, switches_max=switches_max)
        check(order_of(choices))
        while choices and choices[-1].chosen + 1 == len(choices[-1].able):
            choices.pop()
        if not choices:
            return count
        prefix = [choice.chosen for choice in choices[:-1]] + [choices[-1].chosen + 1]
    raise AssertionError(f"more than {schedules_max} schedules")


def sample(make: Callable[[], Programs], check: Callable[[str], None], *, schedules: int, seed: int) -> int:
    """So many schedules by chance, always the same for one seed."""
    dice = random.Random(seed)
    for _ in range(schedules):
        check(order_of(run(make(), lambda index, able: dice.randrange(len(able)))))
    return schedules
