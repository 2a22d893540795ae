-- SPDX-License-Identifier: MIT
-- The tables and views of a store, format 1. docs/store.md describes them for programs that use plain SQL.
-- The build compiles this text into the library, with a text of parts.sql in the place of each name between two @.

-- One row. changes: each transaction of the library and each insert into a view raises it. So a run sees that a
-- backup was restored (window.c). The last five columns are for programs to set. They hold for each task that
-- leaves the option out, and are read at each failure.
CREATE TABLE tw_meta(
    format INTEGER PRIMARY KEY NOT NULL,    -- of these tables
    revision INTEGER NOT NULL,              -- the last number that a task got
    run INTEGER NOT NULL,                   -- counts the runs, restores and marks
    changes INTEGER NOT NULL,
    restored INTEGER NOT NULL,              -- while it is odd, no task is called
    clock_ms INTEGER NOT NULL,              -- the latest time at which a task was filed, or somebody said
                                            -- until when an attempt lasts
    until_ms INTEGER NOT NULL DEFAULT 0,    -- when the attempts of the run lapse, if it does not raise this before
    backs INTEGER NOT NULL DEFAULT 0,       -- counts the tasks that programs have given back to their old places
    dropped INTEGER NOT NULL DEFAULT 0,     -- counts the tasks and periods that were too late for a tw_take
    tries INTEGER NOT NULL DEFAULT 20
        CONSTRAINT "tries: expected 1 to 1000000"
        CHECK (typeof(tries) = 'integer' AND tries BETWEEN 1 AND 1000000),
    backoff_ms INTEGER NOT NULL DEFAULT 1000
        CONSTRAINT "backoff_ms: expected 1 to 3155760000000"
        CHECK (typeof(backoff_ms) = 'integer' AND backoff_ms BETWEEN 1 AND 3155760000000),
    factor REAL NOT NULL DEFAULT 2
        CONSTRAINT "factor: expected 1 to 100, with at most two decimals"
        CHECK (typeof(factor) = 'real' AND factor BETWEEN 1 AND 100 AND round(factor, 2) = factor),
    backoff_max_ms INTEGER NOT NULL DEFAULT 3600000
        CONSTRAINT "backoff_max_ms: expected 1 to 3155760000000"
        CHECK (typeof(backoff_max_ms) = 'integer' AND backoff_max_ms BETWEEN 1 AND 3155760000000),
    jitter INTEGER NOT NULL DEFAULT 10
        CONSTRAINT "jitter: expected 0 to 100"
        CHECK (typeof(jitter) = 'integer' AND jitter BETWEEN 0 AND 100)
);
INSERT INTO tw_meta(format, revision, run, changes, restored, clock_ms) VALUES (1, 0, 0, 0, 0, 0);

-- A row is a task. The payload comes last, so that reading the other columns does not touch its pages.
CREATE TABLE tw_task(
    revision INTEGER PRIMARY KEY NOT NULL,  -- new with each put and move, never used twice
    queue TEXT NOT NULL,
    id BLOB NOT NULL,
    due_ms INTEGER NOT NULL,                -- of this period, the same in each attempt; Unix time, UTC
    next_ms INTEGER NOT NULL,               -- when it can be taken next; due_ms, later for a retry, earlier if promoted
    place_ms INTEGER NOT NULL,              -- its place in the order: next_ms, or when it was filed, if that is
                                            -- later. Of a task that a program has: the end of its lease
    attempt INTEGER NOT NULL DEFAULT 0,     -- attempts of this period that have begun
    lapses INTEGER NOT NULL DEFAULT 0,      -- how many of them have lapsed: their run or their lease had ended
    run INTEGER NOT NULL DEFAULT 0,         -- its handler has it, in the process of this number; 0: none
    token INTEGER NOT NULL DEFAULT 0,       -- of the attempt under way, or of one that has lapsed; 0: none
    replaced INTEGER NOT NULL DEFAULT 0,    -- that attempt's number, if the task is a newer one; 0: it is not;
                                            -- -1: it is not, and a program has it. If a program has it, run is 0
    dead_ms INTEGER,                        -- when it died; NULL: it lives
    every_ms INTEGER NOT NULL DEFAULT 0,    -- 0: it runs once
    times INTEGER NOT NULL DEFAULT 1,       -- calls left; 0: no end
    missed TEXT,                            -- missed periods: burst, skip or coalesce; NULL: it runs once
    missed_periods INTEGER NOT NULL DEFAULT 0, -- for which the call of this period stands besides its own
    tries INTEGER,                          -- failures until the task is dead; NULL: as tw_meta has it. So are
    backoff_ms INTEGER,                     -- the next four. The first wait after a failure
    factor REAL,                            -- each further wait is so many times as long
    backoff_max_ms INTEGER,                 -- the longest wait
    jitter INTEGER,                         -- percent by which a wait is shorter or longer
    max_late_ms INTEGER,                    -- a first attempt that is later is not made; NULL: no limit
    error TEXT,                             -- of the last attempt that failed
    payload BLOB,                           -- a blob, also if the put had a text, which may be no UTF-8
    UNIQUE (queue, id),
    -- Numbers come before text, and text before blobs. The operator | makes an integer of any value.
    CHECK (queue > '' AND queue < x'' AND length(CAST(queue AS BLOB)) <= 255 AND NOT instr(queue, char(0))),
    CHECK (id > x'' AND length(id) <= 1024),
    CHECK (due_ms BETWEEN 0 AND 253402300799999 AND due_ms | 0 = due_ms),
    CHECK (every_ms BETWEEN 0 AND 3155760000000 AND every_ms | 0 = every_ms),
    CHECK (times >= 0 AND times | 0 = times)
);
-- With the last three columns the index alone answers, and the rows stay untouched. The library names the
-- indexes in its statements, because after ANALYZE SQLite may choose others.
CREATE INDEX tw_order ON tw_task(queue, place_ms, revision, dead_ms, replaced) WHERE dead_ms IS NULL;
CREATE INDEX tw_repeat ON tw_task(queue, place_ms) WHERE dead_ms IS NULL AND every_ms > 0;
CREATE INDEX tw_dead ON tw_task(queue, dead_ms) WHERE dead_ms IS NOT NULL;
CREATE INDEX tw_run ON tw_task(run) WHERE run > 0;

-- What is known of a task beyond its row, while a program has it. A table of its own, because most tasks never
-- have a lease.
CREATE TABLE tw_lease(
    queue TEXT NOT NULL,
    id BLOB NOT NULL,
    end_ms INTEGER NOT NULL,                -- the same as place_ms of the task
    lease_ms INTEGER NOT NULL,              -- how long it was when it was made or touched
    filed_ms INTEGER NOT NULL,              -- the place of the task before the take
    take NOT NULL,                          -- the name of the take
    worker TEXT NOT NULL,                   -- the name of the program
    PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX tw_lease_end ON tw_lease(end_ms, filed_ms);
CREATE INDEX tw_lease_take ON tw_lease(take);

-- What is known of a queue beyond its tasks.
CREATE TABLE tw_queue(
    name TEXT PRIMARY KEY NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The time now, as Unix time in milliseconds. (Rejected: unixepoch('subsec'), which SQLite has since 3.42.)
CREATE VIEW tw_clock(clock) AS
    SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER);

-- The tasks for programs, as a look of the contract shows them. An absent number or text is NULL. The end of the
-- lease is NULL too if a handler has the task.
CREATE VIEW tw_look(queue, id, state, due_ms, next_ms, attempt, lapses, replaced, every_ms, times, missed,
        missed_periods, max_late_ms, tries, backoff_ms, factor, backoff_max_ms, jitter, worker, lease_end_ms, dead_ms,
        revision, place_ms, error, payload) AS
    SELECT queue, id,
        CASE WHEN dead_ms IS NOT NULL THEN 'dead'
             WHEN (replaced <> 0 AND run = 0) OR (run <> 0 AND run = (SELECT m.run FROM tw_meta m)) THEN 'leased'
             WHEN next_ms <= (SELECT clock FROM tw_clock) THEN 'ready'
             ELSE 'waiting' END,
        due_ms,
        CASE WHEN dead_ms IS NOT NULL THEN NULL WHEN replaced <> 0 AND run = 0 THEN place_ms ELSE next_ms END,
        max(attempt, replaced), lapses, replaced > 0, nullif(every_ms, 0), nullif(times, 0),
        missed, missed_periods, max_late_ms,
        coalesce(tries, (SELECT m.tries FROM tw_meta m)), coalesce(backoff_ms, (SELECT m.backoff_ms FROM tw_meta m)),
        coalesce(factor, (SELECT m.factor FROM tw_meta m)),
        coalesce(backoff_max_ms, (SELECT m.backoff_max_ms FROM tw_meta m)),
        coalesce(jitter, (SELECT m.jitter FROM tw_meta m)), worker, end_ms, dead_ms, revision, place_ms, error, payload
    FROM tw_task LEFT JOIN tw_lease USING (queue, id);

-- Attempts. A program takes tasks for a time, the lease, and answers with the token of each. The next seven views
-- are for those behind them, and for the library.

-- The wait after the failure that comes next, or that a lapse stands for: task/backoff.c in SQL. The factor is in
-- hundredths. The wait ends to grow at its limit, or with a factor of 1.
CREATE VIEW tw__wait(revision, wait_ms, jitter) AS
    SELECT t.revision, (WITH RECURSIVE wait(failures, ms, most, hundredths) AS (
            SELECT t.attempt - t.lapses, min(coalesce(t.backoff_ms, m.backoff_ms),
                    coalesce(t.backoff_max_ms, m.backoff_max_ms)), coalesce(t.backoff_max_ms, m.backoff_max_ms),
                CAST(round(coalesce(t.factor, m.factor) * 100) AS INTEGER)
            UNION ALL SELECT failures - 1,
                    min(most, max(ms + 1, ms / 100 * hundredths + ms % 100 * hundredths / 100)), most, hundredths
                FROM wait WHERE failures > 1 AND ms < most AND hundredths > 100)
        SELECT max(ms) FROM wait), coalesce(t.jitter, m.jitter)
    FROM tw_task t, tw_meta m;

-- The name of a dead period: the first that is free.
CREATE VIEW tw__name(revision, name) AS
    SELECT revision, CAST(id || '@' || due_ms || coalesce('-' || (
            WITH RECURSIVE suffix(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM suffix WHERE EXISTS (
                SELECT 1 FROM tw_task o WHERE o.queue = t.queue
                    AND o.id = CAST(t.id || '@' || t.due_ms || coalesce('-' || nullif(n, 0), '') AS BLOB)))
            SELECT nullif(max(n), 0) FROM suffix), '') AS BLOB)
    FROM tw_task t;

-- The attempts whose lease has run out, and how each ends. The revision is 0 if somebody has removed the row.
CREATE VIEW tw__over(revision, queue, id, how, end_ms, filed_ms, error) AS
    SELECT coalesce(t.revision, 0), l.queue, l.id,
        CASE WHEN t.lapses < 16 THEN 'failed' ELSE 'dead' END, l.end_ms,
        l.filed_ms, 'the lease ran out'
    FROM tw_lease l LEFT JOIN tw_task t ON t.queue = l.queue AND t.id = l.id AND t.replaced <> 0 AND t.run = 0
    WHERE l.end_ms <= (SELECT clock FROM tw_clock);

-- INSERT INTO tw__end ends an attempt. how is done, failed, dead or back, and lapsed is 1 if nobody has answered.
-- next_ms is the time of the next attempt, if somebody has named one. The statements follow src/task: each of them
-- finds the task under its old revision, or not at all after one of those before has given it a new one.
CREATE VIEW tw__end(revision, queue, id, how, lapsed, end_ms, next_ms, error) AS
    SELECT revision, queue, id, NULL, NULL, NULL, next_ms, error FROM tw_task;
CREATE TRIGGER tw__end_insert INSTEAD OF INSERT ON tw__end BEGIN
    UPDATE tw_meta SET revision = revision + 1, backs = backs + (NEW.how = 'back' AND NEW.next_ms IS NULL),
        changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    -- A newer task stands behind the attempt, and waits from now on.
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta), next_ms = max(next_ms, NEW.end_ms),
        place_ms = max(next_ms, NEW.end_ms), run = 0, token = 0, replaced = 0
        WHERE revision = NEW.revision AND replaced > 0;
    -- Given back without a time, a task has its old place and its old revision. If the clock has gone back since, both
    -- may lie ahead, and it is ready all the same.
    UPDATE tw_task SET revision = CASE WHEN NEW.next_ms IS NULL THEN revision
            ELSE (SELECT revision FROM tw_meta) END,
        attempt = attempt - 1, missed_periods = CASE attempt WHEN 1 THEN 0 ELSE missed_periods END,
        next_ms = coalesce(NEW.next_ms, min(next_ms, NEW.end_ms)), place_ms = coalesce(max(NEW.next_ms, NEW.end_ms),
            min(coalesce((SELECT filed_ms FROM tw_lease WHERE queue = NEW.queue AND id = NEW.id), place_ms),
                NEW.end_ms)),
        run = 0, token = 0, replaced = 0
        WHERE revision = NEW.revision AND NEW.how = 'back';
    -- Another attempt. Only a lapse leaves its token behind. Because of max() SQLite computes the wait only once.
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta), error = NEW.error, lapses = lapses + NEW.lapsed,
        (next_ms, place_ms) = (SELECT again_ms, max(again_ms, NEW.end_ms) FROM (SELECT coalesce(NEW.next_ms,
                min(253402300799999, NEW.end_ms + ms - part_ms + token % (2 * part_ms + 1))) AS again_ms
            FROM (SELECT max(wait_ms) AS ms, max(wait_ms) * jitter / 100 AS part_ms FROM tw__wait
                WHERE revision = NEW.revision))),
        run = 0, token = CASE NEW.lapsed WHEN 1 THEN token ELSE 0 END, replaced = 0
        WHERE revision = NEW.revision AND NEW.how = 'failed';
    -- A period that dies becomes a task of its own.
    UPDATE tw_meta SET revision = revision + 1 WHERE NEW.how = 'dead';
    INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, attempt, lapses, dead_ms, tries, backoff_ms,
            factor, backoff_max_ms, jitter, max_late_ms, error, payload)
        SELECT (SELECT revision - 1 FROM tw_meta), queue,
            (SELECT name FROM tw__name WHERE revision = NEW.revision), due_ms,
            next_ms, next_ms, attempt, lapses + NEW.lapsed, NEW.end_ms, tries, backoff_ms,
            factor, backoff_max_ms, jitter, max_late_ms, NEW.error, payload
        FROM tw_task WHERE revision = NEW.revision AND NEW.how = 'dead' AND every_ms > 0;
    UPDATE tw_task SET dead_ms = NEW.end_ms, error = NEW.error, lapses = lapses + NEW.lapsed,
        place_ms = next_ms, run = 0, token = 0, replaced = 0
        WHERE revision = NEW.revision AND NEW.how = 'dead' AND every_ms = 0;
    -- The call has ended. The next period, or none.
    DELETE FROM tw_task WHERE revision = NEW.revision AND NEW.how IN ('done', 'dead') AND dead_ms IS NULL
        AND (every_ms = 0 OR times = 1 OR due_ms + (1 + missed_periods) * every_ms > 253402300799999);
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta), times = max(times - 1, 0), attempt = 0,
        due_ms = due_ms + (1 + missed_periods) * every_ms,
        next_ms = due_ms + (1 + missed_periods) * every_ms,
        place_ms = max(due_ms + (1 + missed_periods) * every_ms, NEW.end_ms),
        lapses = 0, missed_periods = 0, error = NULL, run = 0, token = 0, replaced = 0
        WHERE revision = NEW.revision AND NEW.how IN ('done', 'dead') AND dead_ms IS NULL;
    DELETE FROM tw_lease WHERE queue = NEW.queue AND id = NEW.id;
END;

-- INSERT INTO tw__again mends the order after the clock has gone back: tasks that were filed late would wait too
-- long, and leases, and the attempts of a run that has died, would last too long.
CREATE VIEW tw__again(clock) AS SELECT clock FROM tw_clock;
CREATE TRIGGER tw__again_insert INSTEAD OF INSERT ON tw__again BEGIN
    UPDATE tw_task SET place_ms = max(next_ms, NEW.clock) WHERE (replaced = 0 OR run > 0) AND place_ms > next_ms
        AND revision IN (SELECT revision FROM tw_task INDEXED BY tw_order WHERE queue >= '' AND dead_ms IS NULL
            AND place_ms > NEW.clock AND place_ms <= (SELECT clock_ms FROM tw_meta));
    UPDATE tw_lease SET end_ms = NEW.clock + lease_ms WHERE end_ms > NEW.clock + lease_ms;
    UPDATE tw_task SET place_ms = (SELECT end_ms FROM tw_lease AS l
            WHERE l.queue = tw_task.queue AND l.id = tw_task.id)
        WHERE replaced <> 0 AND run = 0 AND revision IN
            (SELECT t.revision FROM tw_lease AS l CROSS JOIN tw_task AS t
            ON t.queue = l.queue AND t.id = l.id);
    UPDATE tw_meta SET clock_ms = NEW.clock, until_ms = min(until_ms, NEW.clock + 30000),
        changes = changes + 1;
END;

-- The tasks that may be taken now, task/periods.c in SQL: the period that has its turn, for how many more its call
-- stands, how many are too late, whether there is a call now, and whether the task ends without one. A retry is of
-- the same period as the attempt before. The time of a period that was given back may lie ahead of its place, if the
-- clock has gone back.
CREATE VIEW tw__turn(revision, queue, place_ms, due_ms, missed_periods, dropped, calls, ends) AS
    SELECT revision, queue, place_ms, due,
        CASE WHEN attempt > 0 THEN missed_periods WHEN missed = 'coalesce' THEN passed ELSE 0 END, dropped,
        CASE WHEN every_ms = 0 THEN dropped = 0
             ELSE due <= 253402300799999 AND (due = due_ms OR due <= clock) END,
        CASE WHEN every_ms = 0 THEN dropped > 0 ELSE due > 253402300799999 END
    FROM (SELECT *, CASE WHEN missed = 'skip' AND passed > 0 THEN first + (passed + 1) * every_ms
            ELSE first END AS due
        FROM (SELECT *, CASE WHEN attempt = 0 AND every_ms > 0 AND clock > first THEN (clock - first) / every_ms
                ELSE 0 END AS passed
            FROM (SELECT *, due_ms + dropped * every_ms AS first
                FROM (SELECT *, CASE
                        WHEN attempt > 0 OR max_late_ms IS NULL OR clock - max(due_ms, next_ms) <= max_late_ms
                            THEN 0
                        WHEN every_ms = 0 THEN 1
                        ELSE (clock - max_late_ms - due_ms - 1) / every_ms + 1 END AS dropped
                    FROM tw_task INDEXED BY tw_order, tw_clock
                    WHERE dead_ms IS NULL AND place_ms <= clock AND next_ms <= clock AND replaced = 0 AND run = 0))));

-- INSERT INTO tw__give gives a task its turn: it is taken, or it waits for a later period, or it ends.
CREATE VIEW tw__give(revision, take, worker, lease_ms, due_ms, missed_periods, dropped, calls, ends) AS
    SELECT revision, NULL, NULL, NULL, due_ms, missed_periods, NULL, NULL, NULL FROM tw_task;
CREATE TRIGGER tw__give_insert INSTEAD OF INSERT ON tw__give BEGIN
    INSERT INTO tw_lease(queue, id, end_ms, lease_ms, filed_ms, take, worker)
        SELECT queue, id, clock + NEW.lease_ms, NEW.lease_ms, place_ms, NEW.take, NEW.worker FROM tw_task, tw_clock
        WHERE revision = NEW.revision AND NEW.calls
        ON CONFLICT (queue, id) DO UPDATE SET end_ms = excluded.end_ms, lease_ms = excluded.lease_ms,
            filed_ms = excluded.filed_ms, take = excluded.take, worker = excluded.worker;
    UPDATE tw_task SET due_ms = NEW.due_ms, next_ms = CASE due_ms WHEN NEW.due_ms THEN next_ms ELSE NEW.due_ms END,
        missed_periods = NEW.missed_periods, attempt = attempt + 1,
        place_ms = (SELECT clock FROM tw_clock) + NEW.lease_ms,
        token = max(1, random() & 9223372036854775807), replaced = -1
        WHERE revision = NEW.revision AND NEW.calls;
    DELETE FROM tw_task WHERE revision = NEW.revision AND NEW.ends;
    UPDATE tw_meta SET revision = revision + (NOT NEW.calls AND NOT NEW.ends), dropped = dropped + NEW.dropped
        WHERE NOT NEW.calls OR NEW.dropped > 0;
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta), due_ms = NEW.due_ms, next_ms = NEW.due_ms,
        place_ms = NEW.due_ms, missed_periods = 0, token = 0
        WHERE revision = NEW.revision AND NOT NEW.calls;
END;

-- In the views, numbers may come as text or as reals, as some drivers bind them. Names are UTF-8, because programs
-- in many languages cannot read a row with another text.

-- INSERT INTO tw_put(queue, id, due_ms, payload, ...) puts a task.
CREATE VIEW tw_put(queue, id, due_ms, payload, every_ms, times, missed, tries, backoff_ms, factor, backoff_max_ms,
        jitter, max_late_ms, condition) AS
    SELECT queue, id, due_ms, payload, every_ms, times, missed, tries, backoff_ms, factor, backoff_max_ms, jitter,
        max_late_ms, NULL FROM tw_task;
CREATE TRIGGER tw_put_insert INSTEAD OF INSERT ON tw_put BEGIN
    SELECT CASE
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0))
                OR (NEW.queue GLOB '*[^ -~]*' AND @NOT_UTF8(NEW.queue)@) THEN
            RAISE(ABORT, 'tw_put: queue: expected UTF-8 text of 1 to 255 bytes without NUL')
        WHEN typeof(NEW.id) NOT IN ('text', 'blob') OR length(CAST(NEW.id AS BLOB)) NOT BETWEEN 1 AND 960 THEN
            RAISE(ABORT, 'tw_put: id: expected text or a blob of 1 to 960 bytes')
        WHEN NEW.due_ms IS NULL
                OR NEW.due_ms NOT IN (CAST(NEW.due_ms AS INTEGER), CAST(CAST(NEW.due_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.due_ms AS INTEGER) NOT BETWEEN 0 AND 253402300799999 THEN
            RAISE(ABORT,
                'tw_put: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999')
        WHEN typeof(NEW.payload) NOT IN ('text', 'blob', 'null')
                OR length(CAST(NEW.payload AS BLOB)) > 999000000 THEN
            RAISE(ABORT, 'tw_put: payload: expected a blob, text or NULL, of at most 999000000 bytes')
        WHEN NEW.every_ms NOT IN (CAST(NEW.every_ms AS INTEGER), CAST(CAST(NEW.every_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.every_ms AS INTEGER) NOT BETWEEN 1 AND 3155760000000 THEN
            RAISE(ABORT, 'tw_put: every_ms: expected 1 to 3155760000000')
        WHEN NEW.times NOT IN (CAST(NEW.times AS INTEGER), CAST(CAST(NEW.times AS INTEGER) AS TEXT))
                OR CAST(NEW.times AS INTEGER) NOT BETWEEN 1 AND 9223372036854775807 THEN
            RAISE(ABORT, 'tw_put: times: expected 1 to 9223372036854775807')
        WHEN NEW.every_ms IS NULL AND NEW.times IS NOT NULL THEN
            RAISE(ABORT, 'tw_put: times: expected every_ms too')
        WHEN NEW.missed NOT IN ('burst', 'skip', 'coalesce') THEN
            RAISE(ABORT, 'tw_put: missed: expected burst, skip or coalesce')
        WHEN NEW.every_ms IS NULL AND NEW.missed IS NOT NULL THEN
            RAISE(ABORT, 'tw_put: missed: expected every_ms too')
        WHEN NEW.tries NOT IN (CAST(NEW.tries AS INTEGER), CAST(CAST(NEW.tries AS INTEGER) AS TEXT))
                OR CAST(NEW.tries AS INTEGER) NOT BETWEEN 1 AND 1000000 THEN
            RAISE(ABORT, 'tw_put: tries: expected 1 to 1000000')
        WHEN NEW.backoff_ms
                NOT IN (CAST(NEW.backoff_ms AS INTEGER), CAST(CAST(NEW.backoff_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.backoff_ms AS INTEGER) NOT BETWEEN 1 AND 3155760000000 THEN
            RAISE(ABORT, 'tw_put: backoff_ms: expected 1 to 3155760000000')
        WHEN typeof(NEW.factor) = 'blob' OR NEW.factor GLOB '*[^0-9.]*' OR NEW.factor GLOB '*.*.*'
                OR CAST(NEW.factor AS REAL) NOT BETWEEN 1 AND 100
                OR round(CAST(NEW.factor AS REAL), 2) <> CAST(NEW.factor AS REAL) THEN
            RAISE(ABORT, 'tw_put: factor: expected 1 to 100, with at most two decimals')
        WHEN NEW.backoff_max_ms
                NOT IN (CAST(NEW.backoff_max_ms AS INTEGER), CAST(CAST(NEW.backoff_max_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.backoff_max_ms AS INTEGER) NOT BETWEEN 1 AND 3155760000000 THEN
            RAISE(ABORT, 'tw_put: backoff_max_ms: expected 1 to 3155760000000')
        WHEN NEW.jitter NOT IN (CAST(NEW.jitter AS INTEGER), CAST(CAST(NEW.jitter AS INTEGER) AS TEXT))
                OR CAST(NEW.jitter AS INTEGER) NOT BETWEEN 0 AND 100 THEN
            RAISE(ABORT, 'tw_put: jitter: expected 0 to 100')
        WHEN NEW.max_late_ms
                NOT IN (CAST(NEW.max_late_ms AS INTEGER), CAST(CAST(NEW.max_late_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.max_late_ms AS INTEGER) NOT BETWEEN 0 AND 3155760000000 THEN
            RAISE(ABORT, 'tw_put: max_late_ms: expected 0 to 3155760000000')
        WHEN NEW.condition NOT IN ('NX', 'XX', 'GT', 'LT', 'KEEPDUE', 'KEEPDUE NX', 'KEEPDUE XX') THEN
            RAISE(ABORT,
                'tw_put: condition: expected NX, XX, GT, LT, KEEPDUE, KEEPDUE NX, KEEPDUE XX or NULL')
        @REVISION@
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE CASE replace(NEW.condition, 'KEEPDUE ', '')
        WHEN 'NX' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB))
        WHEN 'XX' THEN NOT EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB))
        WHEN 'GT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms >= CAST(NEW.due_ms AS INTEGER))
        WHEN 'LT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms <= CAST(NEW.due_ms AS INTEGER))
    END;
    UPDATE tw_meta SET revision = revision + 1, changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    -- Statements that never conflict: the conflict clause of the caller's INSERT would count for each. The first
    -- makes a missing task a dead one, because KEEPDUE treats both alike.
    INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, dead_ms)
        SELECT revision, NEW.queue, CAST(NEW.id AS BLOB), 0, 0, 0, 0 FROM tw_meta
        WHERE NOT EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB));
    -- The times. KEEPDUE leaves those of a task that lives alone. But if a task is at work, and it or the new one
    -- runs once, the new one is due now. A program that has the task keeps its lease.
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        (due_ms, next_ms) = (SELECT due, due FROM (SELECT CASE WHEN instr(NEW.condition, 'KEEPDUE') THEN clock
            ELSE CAST(NEW.due_ms AS INTEGER) END AS due FROM tw_clock)),
        replaced = max(replaced, attempt), attempt = 0, lapses = 0, missed_periods = 0, error = NULL,
        payload = NULL
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND replaced <> 0 AND run = 0
            AND (instr(NEW.condition, 'KEEPDUE') IS NOT 1
                OR (replaced < 0 AND (every_ms = 0 OR NEW.every_ms IS NULL)));
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        (due_ms, next_ms, place_ms) = (SELECT due, due, max(due, clock) FROM (SELECT clock,
            CASE WHEN dead_ms IS NULL AND instr(NEW.condition, 'KEEPDUE') THEN clock
                ELSE CAST(NEW.due_ms AS INTEGER) END AS due FROM tw_clock)),
        attempt = 0, lapses = 0, missed_periods = 0, dead_ms = NULL, error = NULL, payload = NULL,
        -- While an attempt is under way, its number, run and token stay.
        replaced = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN max(replaced, attempt) ELSE 0 END,
        token = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN token ELSE 0 END,
        run = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN run ELSE 0 END
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND (replaced = 0 OR run > 0) AND (dead_ms IS NOT NULL
            OR instr(NEW.condition, 'KEEPDUE') IS NOT 1
            OR (replaced = 0 AND run = (SELECT nullif(run, 0) FROM tw_meta)
                AND (every_ms = 0 OR NEW.every_ms IS NULL)));
    -- The options and the payload.
    UPDATE tw_task SET missed_periods = CASE WHEN CAST(NEW.every_ms AS INTEGER) > 0
                THEN missed_periods * every_ms / CAST(NEW.every_ms AS INTEGER) ELSE 0 END,
        every_ms = CAST(coalesce(NEW.every_ms, 0) AS INTEGER),
        times = CASE WHEN CAST(coalesce(NEW.every_ms, 0) AS INTEGER) = 0 THEN 1
                ELSE CAST(coalesce(NEW.times, 0) AS INTEGER) END,
        missed = CASE WHEN CAST(NEW.every_ms AS INTEGER) > 0 THEN coalesce(NEW.missed, 'coalesce') END,
        tries = CAST(NEW.tries AS INTEGER), backoff_ms = CAST(NEW.backoff_ms AS INTEGER),
        factor = CAST(NEW.factor AS REAL), backoff_max_ms = CAST(NEW.backoff_max_ms AS INTEGER),
        jitter = CAST(NEW.jitter AS INTEGER),
        max_late_ms = CAST(NEW.max_late_ms AS INTEGER), payload = CAST(NEW.payload AS BLOB)
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_move(queue, id, due_ms, condition) gives a task a new due time.
CREATE VIEW tw_move(queue, id, due_ms, condition) AS SELECT queue, id, due_ms, NULL FROM tw_task;
CREATE TRIGGER tw_move_insert INSTEAD OF INSERT ON tw_move BEGIN
    SELECT CASE
        @QUEUE(tw_move)@
        @ID(tw_move)@
        WHEN NEW.due_ms IS NULL
                OR NEW.due_ms NOT IN (CAST(NEW.due_ms AS INTEGER), CAST(CAST(NEW.due_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.due_ms AS INTEGER) NOT BETWEEN 0 AND 253402300799999 THEN
            RAISE(ABORT,
                'tw_move: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999')
        WHEN NEW.condition NOT IN ('GT', 'LT') THEN
            RAISE(ABORT, 'tw_move: condition: expected GT, LT or NULL')
        @REVISION@
    END;
    @LAPSE@;
    SELECT CASE
        WHEN NOT EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)) THEN
            RAISE(ABORT, 'tw_move: there is no such task: it has ended, or never was')
        WHEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                     AND dead_ms IS NOT NULL) THEN
            RAISE(ABORT, 'tw_move: the task is dead: expected a replay, or a put in its place')
    END;
    SELECT RAISE(IGNORE) WHERE CASE NEW.condition
        WHEN 'GT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms >= CAST(NEW.due_ms AS INTEGER))
        WHEN 'LT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms <= CAST(NEW.due_ms AS INTEGER))
    END;
    UPDATE tw_meta SET revision = revision + 1, changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        due_ms = CAST(NEW.due_ms AS INTEGER), next_ms = CAST(NEW.due_ms AS INTEGER),
        replaced = max(replaced, attempt), attempt = 0, lapses = 0, missed_periods = 0, error = NULL
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND replaced <> 0 AND run = 0;
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        due_ms = CAST(NEW.due_ms AS INTEGER), next_ms = CAST(NEW.due_ms AS INTEGER),
        place_ms = max(CAST(NEW.due_ms AS INTEGER), (SELECT clock FROM tw_clock)),
        attempt = 0, lapses = 0, missed_periods = 0, error = NULL,
        replaced = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN max(replaced, attempt) ELSE 0 END,
        token = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN token ELSE 0 END,
        run = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN run ELSE 0 END
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND (replaced = 0 OR run > 0);
END;

-- INSERT INTO tw_cancel(queue, id) cancels a task, if it exists.
CREATE VIEW tw_cancel(queue, id) AS SELECT queue, id FROM tw_task;
CREATE TRIGGER tw_cancel_insert INSTEAD OF INSERT ON tw_cancel BEGIN
    SELECT CASE
        @QUEUE(tw_cancel)@
        @ID(tw_cancel)@
    END;
    @LAPSE@;
    DELETE FROM tw_lease WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
    DELETE FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
    UPDATE tw_meta SET changes = changes + 1 WHERE changes() > 0;
END;

-- INSERT INTO tw_promote(queue, id) lets a task that waits be ready now.
CREATE VIEW tw_promote(queue, id) AS SELECT queue, id FROM tw_task;
CREATE TRIGGER tw_promote_insert INSTEAD OF INSERT ON tw_promote BEGIN
    SELECT CASE
        @QUEUE(tw_promote)@
        @ID(tw_promote)@
        @REVISION@
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM tw_look
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND state = 'waiting');
    UPDATE tw_meta SET revision = revision + 1, changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        (next_ms, place_ms) = (SELECT clock, clock FROM tw_clock)
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_pause(queue, paused) pauses a queue, if paused is 1, or ends its pause, if it is 0.
CREATE VIEW tw_pause(queue, paused) AS SELECT name, paused FROM tw_queue;
CREATE TRIGGER tw_pause_insert INSTEAD OF INSERT ON tw_pause BEGIN
    SELECT CASE
        WHEN NEW.paused IS NULL OR NEW.paused NOT IN (0, 1, '0', '1') THEN
            RAISE(ABORT, 'tw_pause: paused: expected 0 or 1')
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0))
                OR (NEW.paused AND NEW.queue GLOB '*[^ -~]*' AND @NOT_UTF8(NEW.queue)@) THEN
            RAISE(ABORT, 'tw_pause: queue: expected UTF-8 text of 1 to 255 bytes without NUL')
    END;
    SELECT RAISE(IGNORE) WHERE CAST(NEW.paused AS INTEGER)
        = EXISTS (SELECT 1 FROM tw_queue WHERE name = NEW.queue AND paused <> 0);
    DELETE FROM tw_queue WHERE name = NEW.queue;
    INSERT INTO tw_queue(name, paused) SELECT NEW.queue, 1 WHERE CAST(NEW.paused AS INTEGER);
    UPDATE tw_meta SET changes = changes + 1;
END;

-- INSERT INTO tw_replay(queue, id, due_ms) lets a dead task wait again, for now if due_ms is NULL.
CREATE VIEW tw_replay(queue, id, due_ms) AS SELECT queue, id, NULL FROM tw_task WHERE dead_ms IS NOT NULL;
CREATE TRIGGER tw_replay_insert INSTEAD OF INSERT ON tw_replay BEGIN
    SELECT CASE
        @QUEUE(tw_replay)@
        @ID(tw_replay)@
        WHEN NEW.due_ms NOT IN (CAST(NEW.due_ms AS INTEGER), CAST(CAST(NEW.due_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.due_ms AS INTEGER) NOT BETWEEN 0 AND 253402300799999 THEN
            RAISE(ABORT,
                'tw_replay: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999')
        @REVISION@
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM tw_task
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND dead_ms IS NOT NULL);
    UPDATE tw_meta SET revision = revision + 1, changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    UPDATE tw_task SET revision = (SELECT revision FROM tw_meta),
        (due_ms, next_ms, place_ms) = (SELECT due, due, max(due, clock) FROM (SELECT clock,
            coalesce(CAST(NEW.due_ms AS INTEGER), clock) AS due FROM tw_clock)),
        attempt = 0, lapses = 0, missed_periods = 0, run = 0, dead_ms = NULL, error = NULL
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_take(queue, take, worker, lease_ms, count) takes tasks. `take` is a random name of the caller,
-- by which tw_taken shows them. A name that has tasks already takes no further ones.
CREATE VIEW tw_take(queue, take, worker, lease_ms, count) AS
    SELECT queue, take, worker, lease_ms, NULL FROM tw_lease;
CREATE TRIGGER tw_take_insert INSTEAD OF INSERT ON tw_take BEGIN
    SELECT CASE
        @QUEUE(tw_take)@
        WHEN typeof(NEW.take) NOT IN ('text', 'blob') OR length(CAST(NEW.take AS BLOB)) NOT BETWEEN 8 AND 255
                OR (typeof(NEW.take) = 'text' AND (NEW.take GLOB '*[^ -~]*' OR instr(NEW.take, char(0)))) THEN
            RAISE(ABORT, 'tw_take: take: expected a random name, ASCII or a blob of 8 to 255 bytes')
        WHEN typeof(NEW.worker) NOT IN ('text', 'null') OR length(CAST(NEW.worker AS BLOB)) > 255
                OR instr(NEW.worker, char(0))
                OR (NEW.worker GLOB '*[^ -~]*' AND @NOT_UTF8(NEW.worker)@) THEN
            RAISE(ABORT, 'tw_take: worker: expected UTF-8 text of at most 255 bytes without NUL, or NULL')
        WHEN NEW.lease_ms IS NULL
                OR NEW.lease_ms NOT IN (CAST(NEW.lease_ms AS INTEGER), CAST(CAST(NEW.lease_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.lease_ms AS INTEGER) NOT BETWEEN 1 AND 4294967295 THEN
            RAISE(ABORT, 'tw_take: lease_ms: expected 1 to 4294967295')
        WHEN NEW.count NOT IN (CAST(NEW.count AS INTEGER), CAST(CAST(NEW.count AS INTEGER) AS TEXT))
                OR CAST(NEW.count AS INTEGER) NOT BETWEEN 1 AND 1000 THEN
            RAISE(ABORT, 'tw_take: count: expected 1 to 1000')
    END;
    INSERT INTO tw__again SELECT clock FROM tw_meta, tw_clock WHERE clock_ms > clock;
    -- Attempts that are over, of all queues: their lease has run out, or their run has ended. Of those of the
    -- present run nobody knows that but by the time until which it wanted to be alive.
    INSERT INTO tw__end SELECT revision, queue, id, how, 1, end_ms, NULL, error FROM tw__over
        ORDER BY end_ms, filed_ms LIMIT 1000;
    INSERT INTO tw__end SELECT revision, queue, id, CASE WHEN lapses < 16 THEN 'failed' ELSE 'dead' END, 1,
            (SELECT clock FROM tw_clock), NULL, 'the run has ended'
        FROM tw_task INDEXED BY tw_run
        WHERE run > 0 AND run <= (SELECT run - (until_ms > clock) FROM tw_meta, tw_clock) LIMIT 1000;
    SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM tw_lease WHERE take = NEW.take);
    SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM tw_queue WHERE name = NEW.queue AND paused <> 0)
        OR EXISTS (SELECT 1 FROM tw_meta WHERE restored & 1);
    -- A take that finds nothing changes nothing. Otherwise programs that wait would wake each other for ever.
    UPDATE tw_meta SET changes = changes + 1,
        clock_ms = (SELECT clock FROM tw_clock)
        WHERE EXISTS (SELECT 1 FROM tw__turn WHERE queue = NEW.queue);
    -- Mostly each of the first tasks has a call now, and these are all. Otherwise as many of them as the take may
    -- have `more` were passed over, and further ones take their turns, until 1000 in all were passed over.
    INSERT INTO tw__give SELECT revision, NEW.take, coalesce(NEW.worker, ''), CAST(NEW.lease_ms AS INTEGER),
            due_ms, missed_periods, dropped, calls, ends
        FROM tw__turn WHERE queue = NEW.queue ORDER BY place_ms, revision
        LIMIT CAST(coalesce(NEW.count, 1) AS INTEGER);
    INSERT INTO tw__give SELECT revision, NEW.take, coalesce(NEW.worker, ''), CAST(NEW.lease_ms AS INTEGER),
            due_ms, missed_periods, dropped, calls, ends
        FROM (SELECT *, sum(calls) OVER w AS taken, sum(NOT calls) OVER w AS passed
            FROM (SELECT * FROM tw__turn WHERE queue = NEW.queue ORDER BY place_ms, revision
                LIMIT 1000 * (SELECT count(*) < CAST(coalesce(NEW.count, 1) AS INTEGER) FROM tw_lease
                    WHERE take = NEW.take))
            WINDOW w AS (ORDER BY place_ms, revision ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
            (SELECT CAST(coalesce(NEW.count, 1) AS INTEGER) - count(*) AS more FROM tw_lease WHERE take = NEW.take)
        WHERE taken - calls < more AND passed + calls <= 1000 - more
        ORDER BY place_ms, revision;
END;

-- The tasks of a take, in their order, but for those that were put anew or moved since.
CREATE VIEW tw_taken(take, queue, id, due_ms, attempt, token, lease_end_ms, missed_periods, error, payload) AS
    SELECT take, t.queue, t.id, due_ms, attempt, printf('%016x', token), end_ms, missed_periods, error, payload
    FROM tw_lease l JOIN tw_task t ON t.queue = l.queue AND t.id = l.id
    WHERE replaced < 0 AND run = 0 ORDER BY filed_ms, revision;

-- The tokens that are good for tw_ack, and whether they are for the other answers too.
CREATE VIEW tw__answer(revision, queue, id, token, held) AS
    SELECT revision, queue, id, printf('%016x', token), replaced <> 0 AND run = 0 FROM tw_task
    WHERE token > 0 AND dead_ms IS NULL;

-- INSERT INTO tw_ack(queue, id, token) ends an attempt whose work is done.
CREATE VIEW tw_ack(queue, id, token) AS SELECT queue, id, token FROM tw__answer;
CREATE TRIGGER tw_ack_insert INSTEAD OF INSERT ON tw_ack BEGIN
    SELECT CASE
        @QUEUE(tw_ack)@
        @ID(tw_ack)@
        @TOKEN(tw_ack)@
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM tw__answer
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND token = lower(NEW.token));
    INSERT INTO tw__end SELECT revision, queue, id, 'done', 0, clock, NULL, NULL FROM tw__answer, tw_clock
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_nack(queue, id, token, how, error, next_ms) ends an attempt whose work is not done. how is failed,
-- which NULL is too, dead or back. next_ms is the time of the next attempt.
CREATE VIEW tw_nack(queue, id, token, how, error, next_ms) AS
    SELECT queue, id, token, NULL, NULL, NULL FROM tw__answer;
CREATE TRIGGER tw_nack_insert INSTEAD OF INSERT ON tw_nack BEGIN
    SELECT CASE
        @QUEUE(tw_nack)@
        @ID(tw_nack)@
        @TOKEN(tw_nack)@
        WHEN NEW.how NOT IN ('failed', 'dead', 'back') THEN
            RAISE(ABORT, 'tw_nack: how: expected failed, dead, back or NULL')
        WHEN NEW.how = 'back' AND NEW.error IS NOT NULL THEN
            RAISE(ABORT, 'tw_nack: error: expected NULL, as nothing has failed')
        WHEN NEW.how = 'dead' AND NEW.next_ms IS NOT NULL THEN
            RAISE(ABORT, 'tw_nack: next_ms: expected NULL, as a dead task has no next attempt')
        WHEN typeof(NEW.error) NOT IN ('text', 'null') THEN
            RAISE(ABORT, 'tw_nack: error: expected text or NULL')
        WHEN NEW.next_ms NOT IN (CAST(NEW.next_ms AS INTEGER), CAST(CAST(NEW.next_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.next_ms AS INTEGER) NOT BETWEEN 0 AND 253402300799999 THEN
            RAISE(ABORT, 'tw_nack: next_ms: expected 0 to 253402300799999')
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM tw__answer
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND token = lower(NEW.token) AND held);
    INSERT INTO tw__end SELECT t.revision, t.queue, t.id, CASE WHEN coalesce(NEW.how, 'failed') = 'failed'
                AND attempt - lapses >= coalesce(t.tries, m.tries) THEN 'dead' ELSE coalesce(NEW.how, 'failed') END,
            0, clock, CAST(NEW.next_ms AS INTEGER),
            -- At most 4096 bytes, and no part of a character. A character that is not UTF-8 becomes as many '?' as it
            -- has bytes, and the text ends before a NUL: other programs have to read the row.
            CASE WHEN NEW.error NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*' AND NOT instr(NEW.error, char(0))
                THEN nullif(substr(NEW.error, 1, 4096), '')
            ELSE (WITH RECURSIVE parts(text, rest) AS (
                    SELECT '', CAST(substr(CAST(NEW.error AS BLOB), 1, coalesce((SELECT max(column1)
                        FROM (VALUES (4093), (4094), (4095), (4096))
                        WHERE (substr(CAST(NEW.error AS BLOB), column1 + 1, 1) BETWEEN x'80' AND x'bf')
                            IS NOT 1), 4096)) AS TEXT)
                    UNION ALL SELECT text || CASE WHEN hex(substr(rest, 1, 1)) IN (hex(char(unicode(rest))),
                            'EFBFBE', 'EFBFBF') THEN substr(rest, 1, 1)
                        ELSE replace(hex(zeroblob(length(CAST(substr(rest, 1, 1) AS BLOB)))), '00', '?') END,
                        substr(rest, 2)
                    FROM parts WHERE rest <> '')
                SELECT nullif(text, '') FROM parts WHERE rest = '') END
        FROM tw_task t, tw_meta m, tw_clock
        WHERE t.queue = NEW.queue AND t.id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_touch(queue, id, token, lease_ms) lets a lease end so long from now.
CREATE VIEW tw_touch(queue, id, token, lease_ms) AS SELECT queue, id, token, NULL FROM tw__answer;
CREATE TRIGGER tw_touch_insert INSTEAD OF INSERT ON tw_touch BEGIN
    SELECT CASE
        @QUEUE(tw_touch)@
        @ID(tw_touch)@
        @TOKEN(tw_touch)@
        WHEN NEW.lease_ms IS NULL
                OR NEW.lease_ms NOT IN (CAST(NEW.lease_ms AS INTEGER), CAST(CAST(NEW.lease_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.lease_ms AS INTEGER) NOT BETWEEN 1 AND 4294967295 THEN
            RAISE(ABORT, 'tw_touch: lease_ms: expected 1 to 4294967295')
    END;
    @LAPSE@;
    SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM tw__answer
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND token = lower(NEW.token) AND held);
    UPDATE tw_meta SET changes = changes + 1,
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    UPDATE tw_task SET place_ms = (SELECT clock FROM tw_clock) + CAST(NEW.lease_ms AS INTEGER)
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
    UPDATE tw_lease SET lease_ms = CAST(NEW.lease_ms AS INTEGER),
        end_ms = (SELECT clock FROM tw_clock) + CAST(NEW.lease_ms AS INTEGER)
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- The tasks for people: ids as text, times of day in UTC. Programs in many languages cannot read a row with a
-- text that is not UTF-8. So such an id is in hexadecimal, as is an id with a zero byte, and id_form says so.
-- A queue that is not UTF-8, because somebody has written to the tables, is shown as a blob.
CREATE VIEW tw_list(queue, id, due, next, state, attempt, error, payload, id_form) AS
    SELECT CASE WHEN queue NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN queue
             WHEN @NOT_UTF8(queue)@ THEN CAST(queue AS BLOB)
             ELSE queue END,
        CASE id_form WHEN 'text' THEN CAST(id AS TEXT) ELSE lower(hex(id)) END,
        strftime('%Y-%m-%dT%H:%M:%SZ', due_ms / 1000, 'unixepoch'),
        strftime('%Y-%m-%dT%H:%M:%SZ', next_ms / 1000, 'unixepoch'), state, attempt, error, payload, id_form
    FROM (SELECT *,
        CASE WHEN instr(id, x'00') THEN 'hex'
             WHEN CAST(id AS TEXT) NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN 'text'
             WHEN @NOT_UTF8(CAST(id AS TEXT))@ THEN 'hex'
             ELSE 'text' END AS id_form
        FROM tw_look);
