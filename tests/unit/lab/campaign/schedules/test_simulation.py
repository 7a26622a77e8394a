"""The simulation's clock, threads, kills and stand-stills."""

from __future__ import annotations

import threading

import pytest

from tests.lab.campaign.schedules.simulation import SECOND, Killed, Simulation, simulation
from tests.lab.campaign.schedules.threads import Event, Executor, Lock, Thread, Timer


def test_what_happens_first_comes_first() -> None:
    """Threads of several processes take turns by the clock, not by the order of their start."""
    done: list[str] = []
    with Simulation(1) as world:
        for name, naps in (("a", (3, 3)), ("b", (1, 4))):
            process = world.process(name)

            def work(name: str = name, naps: tuple[int, ...] = naps) -> None:
                for nap in naps:
                    world.sleep(nap * SECOND)
                    done.append(f"{name}{world.now // SECOND}")

            world.spawn(process, work)
        world.run()
    assert done == ["b1", "a3", "b5", "a6"]


def test_a_killed_process_goes_on_with_nothing_and_what_it_catches_does_not_save_it() -> None:
    """Its threads unwind; whatever waits in a handler of errors is killed again."""
    done: list[str] = []
    with Simulation(1) as world:
        process = world.process("a")

        def work() -> None:
            try:
                world.sleep(9 * SECOND)
            finally:
                done.append("unwinds")
                with pytest.raises(Killed):
                    world.sleep(1)

        world.spawn(process, work)
        world.spawn(process, lambda: done.append("never"), delay=8 * SECOND)
        world.at(SECOND, lambda: world.kill(process))
        world.run()
    assert done == ["unwinds"]
    assert not world.errors


def test_a_process_that_stands_still_finds_out_later() -> None:
    """What would have woken it meanwhile wakes it when it goes on."""
    done: list[int] = []
    with Simulation(1) as world:
        process = world.process("a")

        def work() -> None:
            world.sleep(2 * SECOND)
            done.append(world.now // SECOND)

        world.spawn(process, work)
        world.at(SECOND, lambda: world.freeze(process, 30 * SECOND))
        world.run()
    assert done == [31]


def test_clocks_of_processes_differ() -> None:
    """Each shows its own time; S3 has one of its own."""
    shown: list[int] = []
    with Simulation(1) as world:
        for skew_ms in (-5, 7):
            world.spawn(world.process(str(skew_ms), skew_ms=skew_ms), lambda: shown.append(world.wall_ms()))
        world.run()
        assert [one - world.now_ms() for one in shown] == [-5, 7]


def test_locks_events_timers_and_pools_wait_on_the_same_clock() -> None:
    """They behave as Python's own."""
    done: list[object] = []
    with Simulation(1) as world:

        def doubled(letter: str) -> str:
            simulation().sleep(SECOND)
            return 2 * letter

        def work() -> None:
            lock, event = Lock(), Event()

            def hold() -> None:
                with lock:
                    world.sleep(5 * SECOND)
                event.set()

            holder = Thread(target=hold)
            holder.start()
            world.sleep(SECOND)
            done.append(lock.acquire(timeout=1))
            done.append(event.wait(1))
            done.append(holder.is_alive())
            holder.join()
            done.append((event.is_set(), lock.acquire(timeout=1), world.now // SECOND))
            for cancelled in (True, False):
                timer = Timer(2, done.append, (f"cancelled: {cancelled}",))
                timer.start()
                if cancelled:
                    timer.cancel()
            with Executor(2) as pool:
                done.append([*pool.map(doubled, "abc")])
            done.append(world.now // SECOND)

        world.spawn(world.process("a"), work)
        world.run()
    assert done == [False, False, True, (True, True, 5), "cancelled: False", ["aa", "bb", "cc"], 7]
    assert not world.errors


def test_an_error_that_nobody_catches_is_kept() -> None:
    """The judge looks at it."""

    def work() -> None:
        raise ZeroDivisionError

    with Simulation(1) as world:
        world.spawn(world.process("a"), work)
        world.run()
    assert [(name, type(error)) for name, error in world.errors] == [("a/main", ZeroDivisionError)]


def test_the_thread_of_a_process_that_was_killed_while_it_waited_is_used_again() -> None:
    """A million schedules have one such process in eight, and a machine has no million threads."""

    def once() -> None:
        with Simulation(1) as world:
            process = world.process("p")
            world.spawn(process, world.wait)
            world.at(SECOND, lambda: world.kill(process))
            world.run()

    once()
    before = threading.active_count()
    for _ in range(3):
        once()
    assert threading.active_count() == before
