# SPDX-License-Identifier: MIT
"""Scheduled jobs of RQ, parked in a queue of the Redis module: no RQScheduler process is needed.

    from datetime import timedelta
    from redis import Redis
    from rq import Retry
    from tickwheel.rq import Queue

    queue = Queue(connection=Redis())
    job = queue.enqueue_in(timedelta(minutes=30), "shop.expire", 42, retry=Retry(max=3, interval=[10, 60]))
    job.cancel()

    rq worker --queue-class tickwheel.rq.Queue --job-class tickwheel.rq.Job

`enqueue_at`, `enqueue_in` and a retry with an interval file the job's id with TW.SEND, in the transaction that
saves the job. When the job is due, the server itself pushes the id to the list of the queue. For each queue
of RQ the module has a queue of its own, `rq:tickwheel:<name of the queue>`. docs/frameworks.md tells which
features of RQ work, and which do not.

Times without a time zone are local times, as in RQ.
"""
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Iterator, List, Optional, Union

import rq
import rq.registry
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import JobStatus
from rq.scheduler import RQScheduler
from rq.utils import as_text, utcformat

from ._tasks import told_by

__all__ = ["Queue", "Job", "ScheduledJobRegistry", "move", "adopt"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
PAGE = 1000

# The time to live of a job counts from its due time, and so moves with it.
MOVE = """
if redis.call('TW.MOVE', KEYS[1], ARGV[1], 'AT', ARGV[2]) ~= 1 then return 0 end
redis.call('HSET', KEYS[2], 'enqueued_at', ARGV[3])
if ARGV[4] ~= '' then redis.call('PEXPIREAT', KEYS[2], ARGV[4]) end
return 1
"""

# Moves up to ARGV[2] jobs from the old sorted set. TW.SEND comes before ZREM: if it fails, the job stays where
# it is. A job whose hash is gone is dropped; no worker could run it. A job that is parked already was filed
# later.
ADOPT = """
local found = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    local hash = ARGV[1] .. found[i]
    local due = string.format('%.0f', math.max(0, tonumber(found[i + 1]) * 1000))
    if redis.call('EXISTS', hash) == 1 then
        local words = {KEYS[2], KEYS[3], found[i], 'AT', due, 'NX', 'LIST'}
        if redis.call('HGET', hash, 'enqueue_at_front') == '1' then words[#words + 1] = 'LEFT' end
        words[#words + 1] = 'PAYLOAD'
        words[#words + 1] = found[i]
        redis.call('TW.SEND', unpack(words))
        local ttl = redis.call('HGET', hash, 'ttl')
        if ttl then redis.call('PEXPIREAT', hash, string.format('%.0f', due + ttl * 1000)) end
    end
    redis.call('ZREM', KEYS[1], found[i])
end
return #found / 2
"""


def unix_ms(moment: datetime) -> int:
    """Returns a time as Unix milliseconds, rounded up: a job is never due early. A naive time is a local
    time."""
    return max(0, -((EPOCH - moment.astimezone(timezone.utc)) // MILLISECOND))


class ScheduledJobRegistry(rq.registry.ScheduledJobRegistry):
    """The parked jobs of a queue, with the methods of RQ's registry of the same name."""

    key_template = "rq:tickwheel:{0}"

    def schedule(self, job, scheduled_datetime, pipeline=None):
        side = ["LIST", "LEFT"] if job.enqueue_at_front else ["LIST"]
        target = Queue.redis_queue_namespace_prefix + self.name
        return (self.connection if pipeline is None else pipeline).execute_command(
            "TW.SEND", self.key, target, job.id, "AT", unix_ms(scheduled_datetime), *side, "PAYLOAD", job.id)

    def remove(self, job, pipeline=None, delete_job=False):
        """Cancels a job, given as Job or id. Returns whether it was parked, unless `pipeline` is given."""
        name = job.id if isinstance(job, rq.job.Job) else job
        connection = self.connection if pipeline is None else pipeline
        removed = connection.execute_command("TW.CANCEL", self.key, name)
        if delete_job:
            self.job_class.fetch(name, connection=self.connection, serializer=self.serializer).delete()
        return removed if pipeline is not None else removed != [0]

    def waiting(self) -> Iterator[str]:
        """Yields the ids of the parked jobs whose time is yet to come, the first due first."""
        page = self.connection.execute_command("TW.RANGE", self.key, "-", "+", "COUNT", PAGE)
        while page:
            yield from (as_text(name) for name, *_ in page)
            name, _, next_ms = page[-1][:3]
            page = len(page) == PAGE and self.connection.execute_command(
                "TW.RANGE", self.key, next_ms, "+", "AFTER", name, "COUNT", PAGE)

    def get_job_ids(self, start: int = 0, end: int = -1) -> List[str]:
        """Returns the ids from position `start` to `end`, the first due first; -1 is the last of all."""
        if start < 0 or end < -1:
            return list(self.waiting())[start:end + 1 or None]
        return list(islice(self.waiting(), start, None if end == -1 else end + 1))

    @property
    def count(self) -> int:
        return self.connection.execute_command("TW.LEN", self.key)

    def due_of(self, job_or_id: Union[rq.job.Job, str]) -> Optional[datetime]:
        """Returns when a job is due, an aware datetime in UTC; None if it is not parked."""
        name = job_or_id.id if isinstance(job_or_id, rq.job.Job) else job_or_id
        row, = self.connection.execute_command("TW.GET", self.key, name)
        return EPOCH + told_by(row)["due"] * MILLISECOND if row else None

    def __contains__(self, item: Union[rq.job.Job, str]) -> bool:
        return self.due_of(item) is not None

    def get_scheduled_time(self, job_or_id: Union[rq.job.Job, str]) -> datetime:
        due = self.due_of(job_or_id)
        if due is None:
            raise NoSuchJobError(f"job {job_or_id} is not scheduled")
        return due

    def get_expiration_time(self, job):
        return self.get_scheduled_time(job).replace(tzinfo=None)

    def get_expired_job_ids(self, timestamp=None):
        """Returns no ids: the server pushes jobs that are due, nobody has to look for them."""
        return []

    get_jobs_to_schedule = get_expired_job_ids

    def remove_jobs(self, timestamp=None, pipeline=None):
        """Removes nothing, as no job that is due lies here."""
        return 0

    def requeue(self, job_or_id: Union[rq.job.Job, str], at_front: bool = False) -> rq.job.Job:
        """Lets a parked job run now. Raises InvalidJobOperation if it is not parked, ValueError for
        `at_front`."""
        if at_front:
            raise ValueError("at_front is True: expected False, as a parked job keeps its end of the list")
        name = job_or_id.id if isinstance(job_or_id, rq.job.Job) else job_or_id
        if not self.connection.execute_command("TW.MOVE", self.key, name, "IN", 0):
            raise InvalidJobOperation(f"job {name} is not scheduled")
        return self.job_class.fetch(name, connection=self.connection, serializer=self.serializer)


class Job(rq.job.Job):
    """A job that knows where it is parked: `cancel()`, `delete()` and `get_status()` look there too."""

    def retry(self, queue, pipeline):
        """Parks the retry, also when the registry of abandoned jobs asks for it, which knows only RQ's
        queue."""
        if not isinstance(queue, Queue):
            queue = Queue(queue.name, connection=queue.connection, job_class=type(self),
                          serializer=queue.serializer)
        super().retry(queue, pipeline)

    def _remove_from_registries(self, pipeline=None, remove_from_queue=True):
        super()._remove_from_registries(pipeline=pipeline, remove_from_queue=remove_from_queue)
        ScheduledJobRegistry(self.origin, connection=self.connection).remove(self, pipeline=pipeline)

    def get_status(self, refresh=True):
        """As in RQ. A scheduled job that is parked no more lies in the list of its queue, so it is
        queued; the server that pushed its id there has not changed its hash."""
        status = super().get_status(refresh)
        if refresh and status == JobStatus.SCHEDULED:
            if self not in ScheduledJobRegistry(self.origin, connection=self.connection):
                self._status = JobStatus.QUEUED.value
        return self._status


class Queue(rq.Queue):
    """A queue that parks its scheduled jobs and its retries."""

    job_class = Job

    @property
    def scheduled_job_registry(self) -> ScheduledJobRegistry:
        return ScheduledJobRegistry(queue=self, job_class=self.job_class, serializer=self.serializer)

    def schedule_job(self, job, datetime, pipeline=None):
        """Saves and parks a job, in one transaction. The hash of the job already has the fields that RQ's
        scheduler would write when the job is due; only its status stays "scheduled" until a worker begins
        it."""
        pipe = self.connection.pipeline() if pipeline is None else pipeline
        due = unix_ms(datetime)
        job.origin = self.name
        job.enqueued_at = (EPOCH + due * MILLISECOND).replace(tzinfo=None)
        if job.timeout is None:
            job.timeout = self._default_timeout
        pipe.sadd(self.redis_queues_keys, self.key)
        job.save(pipeline=pipe)
        if job.ttl:
            pipe.pexpireat(job.key, due + job.ttl * 1000)
        self.scheduled_job_registry.schedule(job, datetime, pipeline=pipe)
        if pipeline is None:
            pipe.execute()
        return job


def move(job: rq.job.Job, when: Union[datetime, timedelta]) -> bool:
    """Gives a parked job another time: a datetime, or a timedelta from now. Returns whether it was parked."""
    due = unix_ms(datetime.now(timezone.utc) + when if isinstance(when, timedelta) else when)
    enqueued_at = utcformat((EPOCH + due * MILLISECOND).replace(tzinfo=None))
    parked = ScheduledJobRegistry(job.origin, connection=job.connection).key
    expires = due + job.ttl * 1000 if job.ttl else ""
    return bool(job.connection.eval(MOVE, 2, parked, job.key, job.id, due, enqueued_at, expires))


def adopt(queue: Queue) -> int:
    """Parks the jobs that lie in RQ's own sorted set of a Queue, `rq:scheduled:<name>`, and returns their
    number. Jobs are moved by a thousand in one step (Lua), so none is lost or doubled.

    Raises InvalidJobOperation, and changes nothing, while a worker with `--with-scheduler` holds the lock of
    this queue: the scheduler might just be pushing the same jobs."""
    lock = RQScheduler.get_locking_key(queue.name)
    if queue.connection.exists(lock):
        raise InvalidJobOperation(f"a scheduler holds {lock}: stop the workers with --with-scheduler first. "
                                  "The lock of a scheduler that was killed ends by itself after a minute")
    old = rq.registry.ScheduledJobRegistry.key_template.format(queue.name)
    keys = [old, queue.scheduled_job_registry.key, queue.key]
    total, moved = 0, 1
    while moved:
        moved = queue.connection.eval(ADOPT, len(keys), *keys, queue.job_class.redis_job_namespace_prefix, PAGE)
        total += moved
    return total
