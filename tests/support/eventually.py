# SPDX-License-Identifier: MIT
"""A test waits for a condition, never for a time.

    wait_until(lambda: server.pending() == 0)            # fails after PATIENCE seconds, and tells the condition
    wait_until(ready, lambda: f"its log: {log()}")       # tells this too
    subprocess.run(words, timeout=PATIENCE)              # all other waits end as late

No test says how fast something is: this machine may be busy (CONTRIBUTING.md, "Tests own time"). To show that
nothing happens, a test files something later and waits until that has happened.
"""
import asyncio
import inspect
import time

PATIENCE = 60  # seconds to wait for any condition


def _look_again(end, patience, condition, value, message):
    """Returns while there is time; then fails."""
    if time.monotonic() <= end:
        return
    try:
        awaited = " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        awaited = repr(condition)
    told = message() if callable(message) else message
    raise AssertionError(f"after {patience} s it is still {value!r}: {awaited}\n{told}")


def wait_until(condition, message="", patience=PATIENCE, every=0.01):
    """Waits until condition() is true, and returns its value. message may be a function."""
    end = time.monotonic() + patience
    while not (value := condition()):
        _look_again(end, patience, condition, value, message)
        time.sleep(every)
    return value


async def wait_until_async(condition, message="", patience=PATIENCE, every=0.01):
    """wait_until for a coroutine: the others of its event loop go on."""
    end = time.monotonic() + patience
    while not (value := condition()):
        _look_again(end, patience, condition, value, message)
        await asyncio.sleep(every)
    return value


def any_moment(rng, most):
    """Lets up to `most` seconds pass, at random: a kill or a rival may come at any moment. No verdict depends
    on it."""
    time.sleep(rng.uniform(0, most))
