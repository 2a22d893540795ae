-- SPDX-License-Identifier: MIT
-- The tables and views of a store, format 1. docs/store.md describes them for programs that use plain SQL.
-- The build compiles this text into the library.

-- One row. changes: each transaction of the library and each insert into a view raises it, to the next multiple
-- of 2^20 and 20 random bits. So a run sees that a backup was restored. The last five columns are for programs to
-- set. They hold for each task that leaves the option out, and are read at each failure.
CREATE TABLE tw_meta(
    format INTEGER PRIMARY KEY NOT NULL,    -- of these tables
    seq INTEGER NOT NULL,                   -- the last number that a task got
    run INTEGER NOT NULL,                   -- counts the runs, restores and marks
    changes INTEGER NOT NULL,
    restored INTEGER NOT NULL,              -- while it is odd, no task is called
    clock_ms INTEGER NOT NULL,              -- the latest time at which a task was filed
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
INSERT INTO tw_meta(format, seq, run, changes, restored, clock_ms) VALUES (1, 0, 0, 0, 0, 0);

-- A row is a task. The payload comes last, so that reading the other columns does not touch its pages.
CREATE TABLE tw_task(
    seq INTEGER PRIMARY KEY NOT NULL,       -- the revision: new with each put and move, never used twice
    queue TEXT NOT NULL,
    id BLOB NOT NULL,
    due_ms INTEGER NOT NULL,                -- of this period, the same in each attempt; Unix time, UTC
    next_ms INTEGER NOT NULL,               -- when it can be taken next; due_ms, later for a retry, earlier if promoted
    place_ms INTEGER NOT NULL,              -- its place in the order: next_ms, or when it was filed, if that is later
    attempt INTEGER NOT NULL DEFAULT 0,     -- attempts of this period that have begun
    lapses INTEGER NOT NULL DEFAULT 0,      -- how many of them have lapsed: their run had ended
    run INTEGER NOT NULL DEFAULT 0,         -- its handler has it, in the process of this number; 0: nobody
    token INTEGER NOT NULL DEFAULT 0,       -- of the attempt that run has, random; 0: none
    replaced INTEGER NOT NULL DEFAULT 0,    -- that attempt's number, if the task is a newer one; 0: it is not
    dead_ms INTEGER,                        -- when it died; NULL: it lives
    every_ms INTEGER NOT NULL DEFAULT 0,   -- 0: it runs once
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
    payload BLOB,
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
CREATE INDEX tw_order ON tw_task(queue, place_ms, seq, dead_ms, replaced) WHERE dead_ms IS NULL;
CREATE INDEX tw_repeat ON tw_task(queue, place_ms) WHERE dead_ms IS NULL AND every_ms > 0;
CREATE INDEX tw_dead ON tw_task(queue, dead_ms) WHERE dead_ms IS NOT NULL;
CREATE INDEX tw_run ON tw_task(run) WHERE run > 0;

-- What is known of a queue beyond its tasks.
CREATE TABLE tw_queue(
    name TEXT PRIMARY KEY NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The time now, as Unix time in milliseconds. (Rejected: unixepoch('subsec'), which SQLite has since 3.42.)
CREATE VIEW tw_clock(clock) AS
    SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER);

-- In the views, numbers may come as text or as reals, as some drivers bind them.

-- INSERT INTO tw_put(queue, id, due_ms, payload, ...) puts a task.
CREATE VIEW tw_put(queue, id, due_ms, payload, every_ms, times, missed, tries, backoff_ms, factor, backoff_max_ms,
        jitter, max_late_ms, condition) AS
    SELECT queue, id, due_ms, payload, every_ms, times, missed, tries, backoff_ms, factor, backoff_max_ms, jitter,
        max_late_ms, NULL FROM tw_task;
CREATE TRIGGER tw_put_insert INSTEAD OF INSERT ON tw_put BEGIN
    SELECT CASE
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0)) THEN
            RAISE(ABORT, 'tw_put: queue: expected text of 1 to 255 bytes without NUL')
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
        WHEN NOT EXISTS (SELECT 1 FROM tw_meta WHERE seq >= coalesce((SELECT max(seq) FROM tw_task), 0)
                         AND seq < 4611686018427387904) THEN
            RAISE(ABORT, 'tw_meta: seq: expected the largest revision of a task, below 2^62')
    END;
    SELECT RAISE(IGNORE) WHERE CASE replace(NEW.condition, 'KEEPDUE ', '')
        WHEN 'NX' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB))
        WHEN 'XX' THEN NOT EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB))
        WHEN 'GT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms >= CAST(NEW.due_ms AS INTEGER))
        WHEN 'LT' THEN EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
                               AND due_ms <= CAST(NEW.due_ms AS INTEGER))
    END;
    UPDATE tw_meta SET seq = seq + 1, changes = (changes | 1048575) + 1 + (random() & 1048575),
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    -- Statements that never conflict: the conflict clause of the caller's INSERT would count for each. The first
    -- makes a missing task a dead one, because KEEPDUE treats both alike.
    INSERT INTO tw_task(seq, queue, id, due_ms, next_ms, place_ms, dead_ms)
        SELECT seq, NEW.queue, CAST(NEW.id AS BLOB), 0, 0, 0, 0 FROM tw_meta
        WHERE NOT EXISTS (SELECT 1 FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB));
    -- The times. KEEPDUE leaves those of a task that lives alone. But if a task is at work, and it or the new one
    -- runs once, the new one is due now.
    UPDATE tw_task SET seq = (SELECT seq FROM tw_meta),
        (due_ms, next_ms, place_ms) = (SELECT due, due, max(due, clock) FROM (SELECT clock,
            CASE WHEN dead_ms IS NULL AND instr(NEW.condition, 'KEEPDUE') THEN clock
                ELSE CAST(NEW.due_ms AS INTEGER) END AS due FROM tw_clock)),
        attempt = 0, lapses = 0, missed_periods = 0, dead_ms = NULL, error = NULL, payload = NULL,
        -- While an attempt is under way, its number, run and token stay.
        replaced = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN max(replaced, attempt) ELSE 0 END,
        token = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN token ELSE 0 END,
        run = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN run ELSE 0 END
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB) AND (dead_ms IS NOT NULL
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
        max_late_ms = CAST(NEW.max_late_ms AS INTEGER), payload = NEW.payload
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_move(queue, id, due_ms, condition) gives a task a new due time.
CREATE VIEW tw_move(queue, id, due_ms, condition) AS SELECT queue, id, due_ms, NULL FROM tw_task;
CREATE TRIGGER tw_move_insert INSTEAD OF INSERT ON tw_move BEGIN
    SELECT CASE
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0)) THEN
            RAISE(ABORT, 'tw_move: queue: expected text of 1 to 255 bytes without NUL')
        WHEN typeof(NEW.id) NOT IN ('text', 'blob') OR length(CAST(NEW.id AS BLOB)) NOT BETWEEN 1 AND 1024 THEN
            RAISE(ABORT, 'tw_move: id: expected text or a blob of 1 to 1024 bytes')
        WHEN NEW.due_ms IS NULL
                OR NEW.due_ms NOT IN (CAST(NEW.due_ms AS INTEGER), CAST(CAST(NEW.due_ms AS INTEGER) AS TEXT))
                OR CAST(NEW.due_ms AS INTEGER) NOT BETWEEN 0 AND 253402300799999 THEN
            RAISE(ABORT,
                'tw_move: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999')
        WHEN NEW.condition NOT IN ('GT', 'LT') THEN
            RAISE(ABORT, 'tw_move: condition: expected GT, LT or NULL')
        WHEN NOT EXISTS (SELECT 1 FROM tw_meta WHERE seq >= coalesce((SELECT max(seq) FROM tw_task), 0)
                         AND seq < 4611686018427387904) THEN
            RAISE(ABORT, 'tw_meta: seq: expected the largest revision of a task, below 2^62')
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
    UPDATE tw_meta SET seq = seq + 1, changes = (changes | 1048575) + 1 + (random() & 1048575),
        clock_ms = max(clock_ms, (SELECT clock FROM tw_clock));
    UPDATE tw_task SET seq = (SELECT seq FROM tw_meta),
        due_ms = CAST(NEW.due_ms AS INTEGER), next_ms = CAST(NEW.due_ms AS INTEGER),
        place_ms = max(CAST(NEW.due_ms AS INTEGER), (SELECT clock FROM tw_clock)),
        attempt = 0, lapses = 0, missed_periods = 0, error = NULL,
        replaced = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN max(replaced, attempt) ELSE 0 END,
        token = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN token ELSE 0 END,
        run = CASE WHEN run > 0 AND run = (SELECT run FROM tw_meta) THEN run ELSE 0 END
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
END;

-- INSERT INTO tw_cancel(queue, id) cancels a task, if it exists.
CREATE VIEW tw_cancel(queue, id) AS SELECT queue, id FROM tw_task;
CREATE TRIGGER tw_cancel_insert INSTEAD OF INSERT ON tw_cancel BEGIN
    SELECT CASE
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0)) THEN
            RAISE(ABORT, 'tw_cancel: queue: expected text of 1 to 255 bytes without NUL')
        WHEN typeof(NEW.id) NOT IN ('text', 'blob') OR length(CAST(NEW.id AS BLOB)) NOT BETWEEN 1 AND 1024 THEN
            RAISE(ABORT, 'tw_cancel: id: expected text or a blob of 1 to 1024 bytes')
    END;
    DELETE FROM tw_task WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB);
    UPDATE tw_meta SET changes = (changes | 1048575) + 1 + (random() & 1048575) WHERE changes() > 0;
END;

-- The tasks for people: ids as text, times of day in UTC. Programs in many languages cannot read a row with a
-- text that is not UTF-8. So such an id is in hexadecimal, as is an id with a zero byte, and id_form says so.
-- Only C checks the name of a queue, so a name that is not UTF-8 is shown as a blob. A payload is a blob
-- whatever it is: to look whether a long text is UTF-8 takes SQL seconds.
CREATE VIEW tw_list(queue, id, due, next, state, attempt, error, payload, id_form) AS
    SELECT CASE WHEN queue NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN queue
             WHEN EXISTS (WITH RECURSIVE parts(one, rest) AS (
                    SELECT substr(queue, 1, 1), substr(queue, 2)
                    UNION ALL SELECT substr(rest, 1, 1), substr(rest, 2) FROM parts WHERE rest <> '')
                SELECT 1 FROM parts WHERE hex(one) NOT IN (hex(char(unicode(one))), 'EFBFBE', 'EFBFBF'))
             THEN CAST(queue AS BLOB)
             ELSE queue END,
        CASE id_form WHEN 'text' THEN CAST(id AS TEXT) ELSE lower(hex(id)) END,
        strftime('%Y-%m-%dT%H:%M:%SZ', due_ms / 1000, 'unixepoch'),
        CASE WHEN dead_ms IS NULL THEN strftime('%Y-%m-%dT%H:%M:%SZ', next_ms / 1000, 'unixepoch') END,
        CASE WHEN dead_ms IS NOT NULL THEN 'dead'
             WHEN run <> 0 AND run = (SELECT tw_meta.run FROM tw_meta) THEN 'leased'
             WHEN next_ms <= (SELECT clock FROM tw_clock) THEN 'ready'
             ELSE 'waiting' END,
        max(attempt, replaced), error,
        CASE typeof(payload) WHEN 'text' THEN CAST(payload AS BLOB) ELSE payload END, id_form
    FROM (SELECT *,
        CASE WHEN instr(id, x'00') THEN 'hex'
             WHEN CAST(id AS TEXT) NOT GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN 'text'
             WHEN EXISTS (WITH RECURSIVE parts(one, rest) AS (
                    SELECT substr(CAST(id AS TEXT), 1, 1), substr(CAST(id AS TEXT), 2)
                    UNION ALL SELECT substr(rest, 1, 1), substr(rest, 2) FROM parts WHERE rest <> '')
                SELECT 1 FROM parts WHERE hex(one) NOT IN (hex(char(unicode(one))), 'EFBFBE', 'EFBFBF'))
             THEN 'hex'
             ELSE 'text' END AS id_form
        FROM tw_task);
