"""Drawn runs that a machine could have recorded: calls return after what they wait for, streams are in order.

Times are µs. Threads take turns or work at once; every launch comes before its activity, and clocks agree.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.schedule.scenes import DEVICE_SYNC, RECORD, STREAM_SYNC, STREAM_WAIT, Program

_FEW = st.integers(1, 12)


@st.composite
def possible_run(draw: st.DrawFn, streams: int = 2, threads: int = 2, most: int = 14) -> Program:
    """A run on one device."""
    program = Program()
    program.op("the first event", 0, 1)
    clock = [1] * threads
    free = [0] * streams  # when everything launched to a stream has ended
    waits_for = [0] * streams  # the end of what its next activity waits for
    taken = [0] * streams  # when a stream took its last launch
    for number in range(draw(st.integers(1, most))):
        thread, stream = draw(st.integers(0, threads - 1)), draw(st.integers(0, streams - 1))
        what = draw(st.sampled_from(("launch", "launch", "launch", "copy", "sync", "device", "event", "turn")))
        now = clock[thread] + draw(_FEW)
        if what == "turn":  # the thread rests until all others are done
            clock[thread] = max(clock) + 15
        elif what == "sync":
            end = max(now + 2, free[stream] + draw(_FEW)) if free[stream] > now else now + draw(_FEW)
            call = program.launch(STREAM_SYNC, ts=now, dur=end - now, tid=thread)
            program.sync("Stream Sync", ts=now, stream=stream, correlation=call)
            clock[thread] = end
        elif what == "device":
            end = max(now + 2, max(free) + draw(_FEW))
            program.launch(DEVICE_SYNC, ts=now, dur=end - now, tid=thread)
            clock[thread] = end
        elif what == "event":
            other = draw(st.integers(0, streams - 1))
            record = program.launch(RECORD, ts=now, tid=thread)
            wait = program.launch(STREAM_WAIT, ts=now + 2, tid=thread)
            program.sync(ts=now + 2, stream=stream, correlation=wait, wait_stream=other, wait_record=record)
            waits_for[stream] = free[other] if other != stream else waits_for[stream]
            clock[thread] = now + 3
        else:
            now = max(now, taken[stream] + 1)
            start = max(now + draw(_FEW), free[stream] + draw(st.integers(0, 2)), waits_for[stream] + 1)
            dur = draw(st.integers(1, 60))
            if what == "copy":
                program.copied("DtoD", ts=now, start=start, dur=dur, lasts=2, stream=stream, tid=thread)
            else:
                program.launched(f"k{number % 3}", ts=now, start=start, dur=dur, lasts=2, stream=stream, tid=thread)
            clock[thread], free[stream], taken[stream], waits_for[stream] = now + 2, start + dur, now, 0
    return program
