# SPDX-License-Identifier: MIT
"""Many workers, producers and an operator on queues with tasks for workers, while their server crashes.

The workers acknowledge late and twice, stall past their leases, nack, forget and die. Some are killed while
they wait, and some leave when they have waited in vain. The server is killed, also in the middle of a write,
restarted, replaced by its replica, made to reload and to rewrite its file. Each round ends with a judgement of
everything (ledger.py):

- each acknowledged PUT has exactly one fate;
- no token counts after its task was taken again, and no task comes back after its ACK;
- attempts are counted one by one, and no task has more than its tries; an attempt that was given back does not
  count, and only then is its number given out again;
- tasks are given out in the order in which they became ready;
- INFO, TW.LEN and TW.DEAD agree with all that.

TICKWHEEL_WORK_ROUNDS: rounds (7; 50 in `make rounds`), which run through all ends of a round.

TICKWHEEL_SEED: the seed of the random choices. The moments are the machine's own.
"""
import os

import pytest

from house import House, play
from load import seeded
from situations import extent


@pytest.mark.long
def test_every_task_has_one_fate(fleet):
    rounds = int(os.environ.get("TICKWHEEL_WORK_ROUNDS") or extent(4, 7, 50))
    house = House(fleet, seeded())
    judge = play(house, rounds)
    assert judge.fates["done"] > 20 and judge.lapses and judge.renewals and house.blocked
    assert house.shop.killed
    assert judge.counts["back"]
    assert rounds < 7 or (judge.fates["kept"] and judge.counts["promoted"])


class Torn(House):
    """The server always ends in the middle of a write."""

    ENDS = [House.tear]


@pytest.mark.long(only=True)
def test_fifty_writes_are_torn(fleet):
    house = Torn(fleet, seeded())
    judge = play(house, 50)
    torn = house.primary.log().count("Truncating the AOF") + house.primary.log().count("cut off")
    print(f"{torn} ends within a command or a transaction")
    assert judge.fates["done"] > 20 and torn
