"""Interrupts that are put off while files change hands."""

from __future__ import annotations

import signal

import pytest

from rooftrace.workflow.locks import uninterrupted


def take_over(done: list[str]) -> None:
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    done.append("not reached")


def take_over_inside_another(done: list[str]) -> None:
    with uninterrupted():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    done.append("not reached")


@pytest.mark.parametrize("act", [take_over, take_over_inside_another])
def test_an_interrupt_within_is_raised_once_all_of_it_is_done(act):
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        act(done)

    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is before
