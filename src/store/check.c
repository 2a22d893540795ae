/* SPDX-License-Identifier: MIT
 *
 * A claim is as old as its commit, and a handler may begin much later. Meanwhile somebody may have cancelled or
 * moved the task, paused its queue, restored a backup into the file, or marked the file as restored. Another
 * run may have begun, because somebody has removed the lock. So a worker asks before each call whether the
 * claim still holds.
 *
 * Mostly the answer needs no statement. SQLite counts the commits to a file in the memory that all its
 * connections share, the header of the "wal-index" (sqlite.org/walformat.html). The claim reads this count
 * while it holds the write lock, so after its commit the count is greater by one. While the count stays there,
 * nobody else has changed anything. Our next commit makes it greater by one again. Such a chain of our commits
 * is a series, and each job knows the series in which it was claimed.
 *
 *     count    7     8     9     10    11
 *              ours  ours  ours  put   ours
 *     series   1     1     1           2          a job of series 1 is looked up from commit 10 on
 *
 * A job of an earlier series is looked up as its answer will look for it (claim.c), and so is each job while
 * SQLite does not tell the count, or tells it in a form that we do not know. A commit that the runner shares
 * with other threads of the process ends a series too, for one of them may have cancelled a job.
 *
 * A claim reads its task anew, but the pauses are those of the last look. So until the runner has looked at the
 * commit that ended a series, jobs of the next one are looked up too. Example: commit 10 is a pause, and the
 * runner has looked before. A job of commit 11 is looked up, and finds its queue paused.
 *
 * The runner looks at each round whether the file is at its path. It may be inside a commit for long: it waits
 * for a lock of others, or for the disk. So a worker looks for the file itself before it begins a job whose
 * claim is 100 ms old. Younger claims need no look: the runner looks for the file between the commit of the
 * claims and the time from which their age counts. Nor has such a job become too late: its claim has decided
 * that.
 *
 * (Rejected: PRAGMA data_version, which needs a lock of the file for each job, and changes with our own
 * commits. Rejected too: to let the runner look for changes, because it may wait seconds for the disk or a
 * lock.)
 */
#include "check.h"

static const uint64_t YOUNG_NS = 100000000; /* a claim: the file was there then */

enum {
    HEADER = 32768,          /* bytes of the first part of the shared memory */
    HEADER_VERSION = 3007000 /* in its first word; the third word is the count */
};

void tw__store_check_init(struct tw__store_check *check)
{
    pthread_mutex_init(&check->lock, NULL);
}

void tw__store_check_fini(struct tw__store_check *check)
{
    tw__store_db_fini(&check->db);
    pthread_mutex_destroy(&check->lock);
}

/* Returns where SQLite counts the commits; NULL: this is not known. The address is good while the connection is
 * open. */
static const volatile uint32_t *find_count(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    volatile void *header = NULL;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK || file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, HEADER, 0, &header) != SQLITE_OK || header == NULL)
        return NULL;
    const volatile uint32_t *words = header;
    return words[0] == HEADER_VERSION ? &words[2] : NULL;
}

void tw__store_check_begin(struct tw__store_check *check, const struct tw__store_db *db)
{
    check->db.db = db->db;
    check->db.schema = db->schema;
    check->db.files = db->files;
    check->db.message = check->message;
    check->db.size = sizeof check->message;
    check->count = find_count(db->db);
}

static uint32_t series_of(uint64_t known)
{
    return (uint32_t)(known >> 32);
}

uint32_t tw__store_check_count(const struct tw__store_check *check)
{
    return check->count != NULL ? *check->count : 0;
}

uint32_t tw__store_check_note(struct tw__store_check *check, const struct tw__store_commits *commits)
{
    uint64_t known = atomic_load(&check->known);
    uint32_t series = series_of(known);
    if (!commits->alone || (uint32_t)known != commits->before) {
        series++;
        check->since = commits->alone ? commits->before : commits->after;
    }
    atomic_store(&check->known, (uint64_t)series << 32 | commits->after);
    bool seen = check->looked - check->since <= commits->after - check->since; /* the counts may overflow */
    return seen ? series : series - 1;
}

/* Looks the task of a job up. */
static bool ask_file(struct tw__store_check *check, const struct tw__store_job *job)
{
    sqlite3_stmt *row = tw__store_db_statement(&check->db, TW__STORE_CHECK, &check->error);
    if (row == NULL)
        return false;
    tw__store_job_bind(&check->db, row, job);
    int code = tw__store_db_step(&check->db, row);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        check->error = tw__store_db_error(&check->db, code, "look a task up");
    sqlite3_reset(row);
    return code == SQLITE_ROW;
}

bool tw__store_check_job(struct tw__store_check *check, const struct tw__store_job *job, uint64_t now_ns)
{
    uint64_t known = atomic_load(&check->known);
    bool young = now_ns <= job->claimed_ns + YOUNG_NS;
    if (!young && (tw__store_job_is_late(job) || !tw__store_db_has_files(&check->db)))
        return false;
    if (check->count != NULL && job->series == series_of(known) && *check->count == (uint32_t)known)
        return true;
    pthread_mutex_lock(&check->lock);
    bool there = ask_file(check, job);
    pthread_mutex_unlock(&check->lock);
    return there;
}

int tw__store_check_error(struct tw__store_check *check, struct tw__store_db *db)
{
    int error = check->error;
    check->error = 0;
    return error == 0 ? 0 : tw__store_db_refuse(db, error, "%s", check->message);
}
