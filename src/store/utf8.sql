-- SPDX-License-Identifier: MIT
-- Whether a TEXT is no UTF-8: the build puts this into schema.sql, as SQL has no functions of its own. unicode()
-- reads a character as SQLite does, so a sequence that is not UTF-8 comes back as other bytes. The two characters
-- that SQLite takes for errors are good.
EXISTS (WITH RECURSIVE parts(one, rest) AS (
        SELECT substr(TEXT, 1, 1), substr(TEXT, 2)
        UNION ALL SELECT substr(rest, 1, 1), substr(rest, 2) FROM parts WHERE rest <> '')
    SELECT 1 FROM parts WHERE hex(one) NOT IN (hex(char(unicode(one))), 'EFBFBE', 'EFBFBF'))
