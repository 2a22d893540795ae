# SPDX-License-Identifier: MIT
"""Delayed tasks of Celery, parked in a queue of the Redis module.

    from celery import Celery
    import tickwheel.celery

    tickwheel.celery.install()
    app = Celery("shop", broker="redis://localhost:6379/0")

After install() each task with `countdown` or `eta`, and each `retry`, is filed with TW.SEND. When it is due,
the server itself pushes it to the list of its queue, as Celery would have done without a delay. So no worker
holds a task that is not due: it costs no memory there, counts for no prefetch, and does not come twice after
the visibility timeout.

The work is done in kombu's transport for Redis, the one place through which every message of Celery goes:
tasks, signatures and chains, retries, `send_task` and beat. The messages, the lists and their priorities stay
those of kombu. docs/frameworks.md tells which features of Celery work, and which do not.

Options in `broker_transport_options`: `tickwheel_queue`, the key of the module's queue
(default "tickwheel:celery"). `global_keyprefix` is put before it, as before all keys.
"""
import contextlib
import functools
import logging
import time
from datetime import datetime, timedelta, timezone
from typing import Callable, Iterator, List, Optional

from celery import Celery
from celery.exceptions import ImproperlyConfigured
from celery.utils.time import maybe_iso8601, maybe_make_aware
from kombu import transport as transports
from kombu.transport import redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads

from ._tasks import told_by

__all__ = ["install", "cancel", "move", "parked", "adopt", "Transport", "SentinelTransport"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
logger = logging.getLogger(__name__)

# Moves a message from the hash of messages that workers hold to the module's queue, unless it has left the
# hash. A task that is parked already is newer than this copy, and stays. TW.SEND comes first: if it fails,
# nothing is changed.
ADOPT = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('TW.SEND', KEYS[3], KEYS[4], ARGV[2], 'AT', ARGV[3], 'NX', 'LIST', 'LEFT', 'PAYLOAD', ARGV[4])
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])
"""


def unix_ms(moment: datetime) -> int:
    """Returns an aware time as Unix milliseconds, rounded up: a task is never due early."""
    return -((EPOCH - moment) // MILLISECOND)


def due_of(message: dict) -> Optional[int]:
    """Returns when a message of Celery is due, in Unix milliseconds; None if it has no eta. Celery takes an
    eta without a time zone for UTC. An eta that is no time is left to the worker, which refuses it."""
    eta = (message.get("headers") or {}).get("eta")
    try:
        return unix_ms(maybe_make_aware(maybe_iso8601(eta))) if eta else None
    except (AttributeError, TypeError, ValueError):
        return None


def without_eta(message: dict) -> dict:
    """Returns the message as it is delivered: a worker would hold a message with an eta if the worker's clock
    is behind the server's. The task finds the time in `self.request.tickwheel_eta`."""
    headers = message["headers"]
    return {**message, "headers": {**headers, "eta": None, "tickwheel_eta": headers["eta"]}}


class Parking:
    """The part of a channel that parks messages; it stands before kombu's channel for Redis."""

    tickwheel_queue = "tickwheel:celery"
    from_transport_options = (*redis.Channel.from_transport_options, "tickwheel_queue")

    @property
    def tickwheel_key(self) -> str:
        return self.global_keyprefix + self.tickwheel_queue

    def _put(self, queue: str, message: dict, **kwargs):
        """Parks a message that is due later; pushes any other message as ever."""
        due = due_of(message)
        if due is None or due <= time.time() * 1000:
            return super()._put(queue, message, **kwargs)
        return self.park(queue, message, due)

    def park(self, queue: str, message: dict, due: int) -> None:
        with self.conn_or_acquire() as client:
            client.execute_command("TW.SEND", self.tickwheel_key, self.target_of(queue, message),
                                   self.id_of(queue, message), "AT", due, "LIST", "LEFT",
                                   "PAYLOAD", dumps(without_eta(message)))

    def target_of(self, queue: str, message: dict) -> str:
        """Returns the key of the list to which kombu pushes the message."""
        priority = self._get_message_priority(message, reverse=False)
        return self.global_keyprefix + self._q_for_pri(queue, priority)

    def id_of(self, queue: str, message: dict) -> str:
        """Returns the id of the parked task: that of Celery. An exchange that has several queues for the
        message files a copy for each, and the copies need different ids."""
        delivery = message["properties"]["delivery_info"]
        name = message["headers"]["id"]
        if delivery["exchange"] and len(self._lookup(delivery["exchange"], delivery["routing_key"])) > 1:
            return f"{name}@{queue}"
        return name

    def basic_consume(self, queue, *args, **kwargs):
        """Consumes as ever, but parks a message that a program without this plug-in has sent with an eta.
        Queues of a fanout exchange are no lists; their messages are left to the worker."""
        consumer = super().basic_consume(queue, *args, **kwargs)
        if queue not in self._fanout_queues:
            deliver = self.connection._callbacks[queue]
            self.connection._callbacks[queue] = functools.partial(self.receive, queue, deliver)
        return consumer

    def receive(self, queue: str, deliver: Callable[[dict], None], message: dict) -> None:
        """Parks the message if it is not due, else hands it to the worker. The message has left its list, so
        the worker gets it too if it cannot be parked: then the worker holds it, as Celery does."""
        due = due_of(message)
        if due is not None and due > time.time() * 1000:
            try:
                return self.park(queue, message, due)
            except (self.ResponseError, *self.connection_errors) as error:
                logger.warning("task %s is held by this worker, because it could not be parked: %s",
                               message["headers"]["id"], error)
        deliver(message)

    def adopt(self) -> int:
        """Parks the messages with an eta that a worker held when it died. Returns their number."""
        unacked = self.global_keyprefix + self.unacked_key
        with self.conn_or_acquire() as client:
            return sum(self.adopt_one(client, unacked, tag, loads(bytes_to_str(entry)))
                       for tag, entry in client.hscan_iter(unacked, count=1000))

    def adopt_one(self, client, unacked: str, tag: bytes, entry: list) -> int:
        message, exchange, routing_key = entry
        due, queues = due_of(message), list(self._lookup(exchange, routing_key))
        if due is None or due <= time.time() * 1000 or len(queues) != 1 or queues[0] in self._fanout_queues:
            return 0  # Work that has begun, or a copy for one of several queues: kombu restores it.
        return client.execute_command("EVAL", ADOPT, 4, unacked, self.global_keyprefix + self.unacked_index_key,
                                      self.tickwheel_key, self.target_of(queues[0], message), tag,
                                      message["headers"]["id"], due, dumps(without_eta(message)))


class Channel(Parking, redis.Channel):
    """kombu's channel for Redis, with tasks parked."""


class SentinelChannel(Parking, redis.SentinelChannel):
    """kombu's channel for a primary that sentinels name, with tasks parked."""

    from_transport_options = (*redis.SentinelChannel.from_transport_options, "tickwheel_queue")


class Transport(redis.Transport):
    """kombu's transport for `redis://` and `rediss://`, with tasks parked."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """kombu's transport for `sentinel://`, with tasks parked."""

    Channel = SentinelChannel
    default_port = redis.SentinelTransport.default_port


def install() -> None:
    """Lets all brokers `redis://`, `rediss://`, `redis+socket://` and `sentinel://` of this process park
    tasks. Call it once, before the first connection: beside the Celery app, in the programs that send tasks
    and in the workers. A second call changes nothing."""
    names = {"redis": "Transport", "rediss": "Transport", "sentinel": "SentinelTransport"}
    for name, transport in names.items():
        transports.TRANSPORT_ALIASES[name] = f"{__name__}:{transport}"
        transports._transport_cache.pop(name, None)


@contextlib.contextmanager
def channel_of(app: Celery) -> Iterator[Parking]:
    with app.connection_or_acquire() as connection:
        channel = connection.default_channel
        if not isinstance(channel, Parking):
            raise ImproperlyConfigured(f"the broker is {connection.as_uri()} without parked tasks: "
                                       "call tickwheel.celery.install() before the first connection")
        yield channel


def ids_of(app: Celery, task_id: str) -> List[str]:
    """Returns the ids that a parked task may have: its own, and that of a copy for each queue."""
    return [task_id, *(f"{task_id}@{queue}" for queue in app.amqp.queues)]


def cancel(app: Celery, *task_ids: str) -> int:
    """Removes parked tasks for good; no worker will see them. Returns the number of messages that were
    removed: 0 says that none of the tasks is parked, so it is due already, done, or unknown. Celery's
    revoke() is for these."""
    ids = [name for task_id in task_ids for name in ids_of(app, task_id)]
    if not ids:
        return 0
    with channel_of(app) as channel, channel.conn_or_acquire() as client:
        return sum(map(bool, client.execute_command("TW.CANCEL", channel.tickwheel_key, *ids)))


def move(app: Celery, task_id: str, countdown: Optional[float] = None, eta: Optional[datetime] = None) -> bool:
    """Gives a parked task another time: `countdown` seconds from now, or `eta`, an aware datetime. Returns
    whether the task was parked. Raises ValueError unless exactly one of the two is given, and it is aware."""
    if (countdown is None) == (eta is None):
        raise ValueError(f"countdown is {countdown!r}, eta is {eta!r}: expected one of them")
    if eta is not None and eta.tzinfo is None:
        raise ValueError(f"eta is {eta!r}: expected a datetime with a time zone")
    when = ("IN", max(0, round(countdown * 1000))) if eta is None else ("AT", max(0, unix_ms(eta)))
    with channel_of(app) as channel, channel.conn_or_acquire() as client, client.pipeline() as pipe:
        for name in ids_of(app, task_id):
            pipe.execute_command("TW.MOVE", channel.tickwheel_key, name, *when)
        return any(pipe.execute())


def parked(app: Celery, task_id: str) -> Optional[datetime]:
    """Returns when a parked task is due, an aware datetime in UTC; None if the task is not parked."""
    with channel_of(app) as channel, channel.conn_or_acquire() as client:
        rows = client.execute_command("TW.GET", channel.tickwheel_key, *ids_of(app, task_id))
    found = [told_by(row)["due"] for row in rows if row]
    return EPOCH + min(found) * MILLISECOND if found else None


def adopt(app: Celery, timeout: float = 1.0) -> int:
    """Parks the tasks with an eta that workers without this plug-in held when they were killed, instead of
    leaving them to the visibility timeout. Each task is moved in one step (Lua), so none is lost or doubled.
    Call it after the last old worker has ended. Returns the number of tasks.

    Tasks in the queues need no call: the workers park them. Raises RuntimeError, and changes nothing, if a
    worker that lives holds tasks with an eta: such a worker would run them too. `timeout` is how many seconds
    the workers have to answer that question."""
    replies = app.control.inspect(timeout=timeout).scheduled() or {}
    holders = [name for name, held in replies.items() if held]
    if holders:
        raise RuntimeError(f"these workers hold tasks with an eta: {', '.join(sorted(holders))}; "
                           "stop them first")
    with channel_of(app) as channel:
        return channel.adopt()
