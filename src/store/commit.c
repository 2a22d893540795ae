/* SPDX-License-Identifier: MIT
 *
 * A commit waits for the disk, 0.1 ms to 20 ms. While one thread waits there, others come with write requests
 * of their own. The thread that comes while nobody leads becomes the leader: it takes all requests of the list,
 * its own among them, makes them in one transaction and wakes their threads. Requests that came meanwhile are
 * the next leader's, who is the first thread among them. So there is no thread for commits, a lone caller pays
 * no switch of threads, and 64 callers share the wait.
 *
 * Each thread waits at a semaphore of its own, and needs no lock when it wakes. The leader wakes its threads
 * before it hands over. A thread that puts one task after the other then is in the next commit already. If the
 * leader handed over first, 64 such threads would form two halves, each of which waits while the other commits:
 * 32 tasks a commit. (Rejected: a condition that wakes all threads of a commit in one call. It saves a tenth of
 * the processor's time, but glibc before 2.41 may lose a wake-up when many threads share a condition, its bug
 * 25847, and then a caller would wait for ever.)
 *
 * A request that fails takes no other back. The leader makes all requests without savepoints first, since
 * hardly one ever fails, and a savepoint costs a tenth of a put. If one fails, the leader begins anew with a
 * savepoint for each. Some errors, for example a full disk, make SQLite roll the whole transaction back. Then,
 * and if the commit itself fails, the leader makes each request again in a transaction of its own, so that each
 * has its own result. (Rejected: to let all requests fail with the first. A put of a hundred megabytes that
 * does not fit the disk would fail its neighbours of a hundred bytes.)
 */
#include "commit.h"

#include <base/assert.h>

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

enum { SHARE_MAX = 1024 }; /* requests of one commit */

struct tw__store_request {
    struct tw__store_request *next;
    tw__store_work_fn *work;
    void *arg;
    sem_t turn; /* posted once, if another thread leads: the request is made, or its thread leads */
    int result;
    bool sync, leads;
    char *message; /* of TW_STORE_MESSAGE_SIZE bytes, if the result is an error */
};

/* ---- one transaction ------------------------------------------------------------------------------------- */

/* SQLite lets nobody change the setting inside a transaction, so it is set around a transaction that asks for
 * it. */
static int set_sync(struct tw__store_db *db, bool full)
{
    return tw__store_db_exec(db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", "synchronous");
}

static int begin_writing(struct tw__store_db *db)
{
    int error = tw__store_db_begin(db, TW__STORE_BEGIN);
    return error == 0 ? tw__store_db_begin_revisions(db) : error;
}

static int commit_all(struct tw__store_db *db)
{
    int error = tw__store_db_end_revisions(db);
    return error == 0 ? tw__store_db_do(db, TW__STORE_COMMIT, "commit") : error;
}

static void note(struct tw__store_request *request, int error, const struct tw__store_db *db)
{
    request->result = error;
    if (error != 0)
        memcpy(request->message, db->message, TW_STORE_MESSAGE_SIZE);
}

static int make_alone(struct tw__store_db *db, struct tw__store_request *request)
{
    int began = begin_writing(db), error = began;
    db->shared = false;
    if (error == 0)
        error = request->work(db, request->arg);
    if (error == 0)
        error = commit_all(db);
    note(request, error, db);
    tw__store_db_roll_back(db);
    return began;
}

/* Makes one request of a transaction that it shares. Returns false if the transaction must begin anew. */
typedef bool make_fn(struct tw__store_db *db, struct tw__store_request *request);

static bool make_plainly(struct tw__store_db *db, struct tw__store_request *request)
{
    note(request, request->work(db, request->arg), db);
    return request->result == 0;
}

static bool make_in_savepoint(struct tw__store_db *db, struct tw__store_request *request)
{
    int error = tw__store_db_do(db, TW__STORE_SAVEPOINT, "savepoint");
    if (error == 0)
        error = request->work(db, request->arg);
    note(request, error, db);
    if (sqlite3_get_autocommit(db->db))
        return false;
    if (error != 0)
        error = tw__store_db_do(db, TW__STORE_ROLLBACK_TO, "roll back");
    return error == 0 && tw__store_db_do(db, TW__STORE_RELEASE, "release") == 0;
}

/* Makes the requests in one transaction. *made tells whether it is committed; if not, nothing of it is.
 * Returns: 0, or an error if the transaction could not begin. */
static int make_together(struct tw__store_db *db, struct tw__store_request *requests, make_fn *make_one,
                         bool *made)
{
    int error = begin_writing(db);
    bool good = error == 0;
    db->shared = true;
    for (struct tw__store_request *request = requests; request != NULL && good; request = request->next)
        good = make_one(db, request);
    *made = good && commit_all(db) == 0;
    tw__store_db_roll_back(db);
    return error;
}

/* If a transaction cannot begin because somebody holds the lock, the requests after it are not tried: each of
 * them would wait as long. */
static void make(struct tw__store_db *db, struct tw__store_request *requests)
{
    bool several = requests->next != NULL, made = false;
    int error = several ? make_together(db, requests, make_plainly, &made) : 0;
    if (several && error == 0 && !made)
        error = make_together(db, requests, make_in_savepoint, &made);
    for (struct tw__store_request *request = requests; request != NULL && !made; request = request->next) {
        if (error == 0)
            error = make_alone(db, request);
        else
            note(request, error, db);
    }
}

/* ---- the leader ------------------------------------------------------------------------------------------ */

/* Takes the first requests off the list. *sync tells whether one of them asks for the disk. */
static struct tw__store_request *take_requests(struct tw__store_writer *writer, bool *sync)
{
    pthread_mutex_lock(&writer->lock);
    struct tw__store_request *first = writer->first, **end = &writer->first;
    *sync = false;
    for (int i = 0; *end != NULL && i < SHARE_MAX; i++) {
        *sync |= (*end)->sync;
        end = &(*end)->next;
    }
    writer->first = *end;
    *end = NULL;
    if (writer->first == NULL)
        writer->last = &writer->first;
    pthread_mutex_unlock(&writer->lock);
    return first;
}

/* A request is its thread's memory, so it is not touched after the post. */
static void wake_callers(struct tw__store_request *requests)
{
    for (struct tw__store_request *request = requests, *next; request != NULL; request = next) {
        next = request->next;
        sem_post(&request->turn);
    }
}

/* The thread of the next request, if there is one, leads from now on. */
static void name_leader(struct tw__store_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct tw__store_request *next = writer->first;
    writer->led = next != NULL;
    pthread_mutex_unlock(&writer->lock);
    if (next != NULL) {
        next->leads = true;
        sem_post(&next->turn);
    }
}

/* Makes the requests that wait, of which the thread's own is the first. */
static void lead(struct tw_store *store, struct tw__store_writer *writer)
{
    bool sync;
    struct tw__store_request *requests = take_requests(writer, &sync);
    TW_ASSERT(requests != NULL);
    sync = sync && (store->options.flags & TW_STORE_OPEN_LAZY) != 0;
    int error = sync ? set_sync(&writer->db, true) : 0;
    for (struct tw__store_request *request = requests; request != NULL && error != 0; request = request->next)
        note(request, error, &writer->db);
    if (error == 0)
        make(&writer->db, requests);
    if (sync)
        set_sync(&writer->db, false);
    wake_callers(requests->next);
    name_leader(writer);
}

/* Adds a request to the list. Returns whether its thread leads. */
static bool file_request(struct tw__store_writer *writer, struct tw__store_request *request)
{
    pthread_mutex_lock(&writer->lock);
    bool leads = !writer->led;
    *writer->last = request;
    writer->last = &request->next;
    writer->led = true;
    pthread_mutex_unlock(&writer->lock);
    return leads;
}

int tw__store_commit(struct tw_store *store, tw__store_work_fn *work, void *arg, bool sync)
{
    char message[TW_STORE_MESSAGE_SIZE];
    struct tw__store_request request = {.work = work, .arg = arg, .sync = sync, .message = message};
    int cancelled;
    TW_ASSERT(store->pid == getpid());
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled); /* others may wait for this thread */
    sem_init(&request.turn, 0, 0);
    bool leads = file_request(&store->writer, &request);
    if (!leads) {
        while (sem_wait(&request.turn) != 0) /* a signal */
            ;
        leads = request.leads;
    }
    if (leads)
        lead(store, &store->writer);
    sem_destroy(&request.turn);
    pthread_setcancelstate(cancelled, NULL);
    return request.result == 0 ? 0 : tw__store_failed(store, request.result, message);
}

void tw__store_writer_init(struct tw__store_writer *writer)
{
    writer->last = &writer->first;
    pthread_mutex_init(&writer->lock, NULL);
}

void tw__store_writer_fini(struct tw__store_writer *writer)
{
    TW_ASSERT(writer->first == NULL && !writer->led);
    pthread_mutex_destroy(&writer->lock);
}
