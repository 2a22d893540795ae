-- SPDX-License-Identifier: MIT
-- Texts that schema.sql has more than once, as SQL has no functions of its own. A line with @NAME begins each, and
-- the build puts it in the place of @NAME@ there. $1 stands for X of @NAME(X)@.

-- @NOT_UTF8: whether the text $1 is no UTF-8. unicode() reads a character as SQLite does, so a sequence that is not
-- UTF-8 comes back as other bytes. The two characters that SQLite takes for errors are good.
EXISTS (WITH RECURSIVE parts(one, rest) AS (
        SELECT substr($1, 1, 1), substr($1, 2)
        UNION ALL SELECT substr(rest, 1, 1), substr(rest, 2) FROM parts WHERE rest <> '')
    SELECT 1 FROM parts WHERE hex(one) NOT IN (hex(char(unicode(one))), 'EFBFBE', 'EFBFBF'))

-- @QUEUE: the view $1 checks the name of a queue that need not be there.
        WHEN typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 255
                OR instr(NEW.queue, char(0)) THEN
            RAISE(ABORT, '$1: queue: expected text of 1 to 255 bytes without NUL')

-- @ID: the view $1 checks the id of a task that need not be there.
        WHEN typeof(NEW.id) NOT IN ('text', 'blob') OR length(CAST(NEW.id AS BLOB)) NOT BETWEEN 1 AND 1024 THEN
            RAISE(ABORT, '$1: id: expected text or a blob of 1 to 1024 bytes')

-- @TOKEN: the view $1 checks a token.
        WHEN typeof(NEW.token) <> 'text' OR length(NEW.token) <> 16 OR NEW.token GLOB '*[^0-9a-fA-F]*' THEN
            RAISE(ABORT, '$1: token: expected the 16 hexadecimal digits that tw_taken shows')

-- @REVISION: the next number of tw_meta must be that of no task.
        WHEN NOT EXISTS (SELECT 1 FROM tw_meta WHERE revision >= coalesce((SELECT max(revision) FROM tw_task), 0)
                         AND revision < 4611686018427387904) THEN
            RAISE(ABORT, 'tw_meta: revision: expected the largest revision of a task, below 2^62')

-- @LAPSE: ends the attempt of the task, if its lease has run out.
    INSERT INTO tw__end SELECT revision, queue, id, how, 1, end_ms, NULL, error FROM tw__over
        WHERE queue = NEW.queue AND id = CAST(NEW.id AS BLOB)
