"""The deadline of a keystroke is that of the thread's own time, and the system is seldom asked for it."""

from __future__ import annotations

import math
import time

import pytest

from cuda_lsp.static import deadline


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_it_has_passed_when_the_thread_has_used_its_time_and_not_before() -> None:
    until = time.thread_time() + 0.02
    assert not deadline.passed(until)
    time.sleep(0.05)  # others have the processor
    assert not deadline.passed(until)
    busy(0.03)
    assert deadline.passed(until)
    assert not deadline.passed(math.inf)


def test_the_system_is_asked_only_when_the_moment_may_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    ask = time.thread_time
    deadline.passed(-math.inf)  # asks

    def counted() -> float:
        asked.append(ask())
        return asked[-1]

    monkeypatch.setattr(deadline.time, "thread_time", counted)
    until = ask() + 100
    assert not any(deadline.passed(until) for _ in range(1000))
    assert len(asked) <= 1
