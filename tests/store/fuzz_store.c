/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the file: bytes are damages to a valid store, its log among them, and then every call of store.h is
 * made on it. No call may crash or hang; a call that fails names one of the library's errors and has a message.
 * With libFuzzer (TICKWHEEL_FUZZ) the program searches for failing inputs. Without libFuzzer it makes inputs
 * from seeds, and runs the files named on its command line.
 *
 *     fuzz_store [--seed N] [--rounds N] [--seconds N] [FILE...]
 */
#include "clock.h"
#include "damage.h"
#include "support.h"
#include "tests/support/eventually.h"
#include "tests/support/extent.h"
#include "tests/support/random.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { INPUT = 48, RETRY_MS = 1000, ROUNDS = 5 };

static struct fixture *fixture;
static struct bytes valid, valid_log; /* the file and its log, as they were made */
static uint64_t seen_bytes;           /* so that the compiler reads them */
static uint64_t opened, calls, failed;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz_store: %s\n", what);
        abort();
    }
}

/* ---- the valid file -------------------------------------------------------------------------------------- */

static struct bytes read_file(const char *end)
{
    char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s%s", fixture->path, end);
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    fseek(file, 0, SEEK_END);
    struct bytes bytes = {malloc((size_t)ftell(file)), (size_t)ftell(file)};
    rewind(file);
    require(bytes.at != NULL && fread(bytes.at, 1, bytes.size, file) == bytes.size, path);
    fclose(file);
    return bytes;
}

static void write_file(const char *end, const struct bytes *bytes)
{
    char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s%s", fixture->path, end);
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(bytes->at, 1, bytes->size, file) == bytes->size, path);
    fclose(file);
}

static void put_some(struct tw_store *store, uint64_t first, uint64_t n)
{
    static char payload[6000];
    for (uint64_t i = first; i < first + n; i++) {
        struct tw_store_delayed task = {.queue = i % 3 == 0 ? "q" : "other",
                                        .id = {&i, sizeof i},
                                        .due_ms = i % 2 == 0 ? i : tw_store_now() + i,
                                        .every_ms = i % 5 == 0 ? 1000 : 0,
                                        .tries = 2,
                                        .payload = {payload, i % 20 == 0 ? sizeof payload : (size_t)i % 60}};
        require(store_put(store, &task, 0) == 1, message(store));
    }
}

/* Most tasks are in the file, the last ones in the log. Some are dead, some wait for a retry. */
static void make_valid(void)
{
    void *state;
    require(store_setup(&state) == 0, "no file");
    fixture = state;
    sqlite3 *db = other_open(fixture);
    put_some(fixture->store, 1, 160);
    other_ask(
        db,
        "UPDATE tw_task SET dead_ms = 5, error = 'no answer' WHERE revision % 7 = 0;"
        "UPDATE tw_task SET attempt = 1, next_ms = due_ms + 3, run = 1, error = 'e' WHERE revision % 11 = 0;"
        "INSERT INTO tw_queue VALUES ('other', 1); PRAGMA wal_checkpoint(TRUNCATE)");
    put_some(fixture->store, 150, 30);
    tw_store_cancel(fixture->store, tw_store_named("other", "12345678"), NULL);
    valid = read_file("");
    valid_log = read_file("-wal");
    sqlite3_close(db);
    tw_store_close(fixture->store);
    fixture->store = NULL;
}

/* ---- every call ------------------------------------------------------------------------------------------ */

static void check(struct tw_store *store, int64_t result)
{
    static const int errors[] = {TW_EINVAL,       TW_ENOMEM,    TW_EGONE,     TW_EDEAD,    TW_EBUSY,
                                 TW_ENOSPACE,     TW_EIO,       TW_EREADONLY, TW_ECORRUPT, TW_EFORMAT,
                                 TW_EINTERRUPTED, TW_EROLLBACK, TW_EREPLACED};
    bool known = result >= 0;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0] && !known; i++)
        known = result == errors[i];
    calls++;
    failed += result < 0;
    require(known, "an unknown error");
    require(result >= 0 || message(store)[0] != '\0', "an error without a message");
}

static void sum_up(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        seen_bytes += ((const unsigned char *)bytes)[i];
}

static void read_task(void *arg, const struct tw_store_task *task)
{
    (void)arg;
    sum_up(task->queue, strlen(task->queue));
    sum_up(task->id.data, task->id.size);
    sum_up(task->payload.data, task->payload.size);
    sum_up(task->error, task->error != NULL ? strlen(task->error) : 0);
}

static void read_load(void *arg, const struct tw_store_load *load)
{
    (void)arg;
    if (load->queue == NULL || strlen(load->queue) > TW_STORE_QUEUE_MAX)
        abort();
}

static void read_queue(void *arg, const char *queue)
{
    (void)arg;
    sum_up(queue, strlen(queue));
}

static void look(struct tw_store *store, const char *queue)
{
    struct tw_store_range dead = {.states = TW_STATE_DEAD}, page = {.from_ms = 2, .after = 2, .count = 3};
    uint64_t next_ms, counts[50], id = 150;
    check(store, store_scan(store, queue, NULL, read_task, NULL));
    check(store, store_scan(store, queue, &dead, read_task, NULL));
    check(store, store_scan(store, queue, &page, read_task, NULL));
    check(store, tw_store_get(store, (struct tw_store_name){queue, {&id, sizeof id}}, read_task, NULL));
    check(store, store_count(store, queue, false));
    check(store, store_count(store, queue, true));
    check(store, tw_store_next(store, queue, &next_ms));
    check(store, tw_store_forecast(store, queue, 1000, 50, counts));
}

static void change(struct tw_store *store)
{
    uint64_t id = 153, other = 999;
    struct tw_store_delayed task = {.queue = "q", .id = {&id, sizeof id}, .due_ms = 5};
    struct tw_store_change changes[3] = {
        {.verb = TW_STORE_VERB_PUT, .task = task},
        {.verb = TW_STORE_VERB_MOVE, .task = task, .conditions = TW_CONDITION_GT}};
    sqlite3 *db;
    check(store, store_put(store, &task, TW_CONDITION_LT));
    check(store, store_move_at(store, (struct tw_store_name){"q", {&id, sizeof id}}, 7, 0));
    changes[2] = (struct tw_store_change){.verb = TW_STORE_VERB_CANCEL, .task = task};
    task.id.data = &other;
    changes[0].task = task;
    check(store, tw_store_apply(store, changes, 3));
    check(store, tw_store_cancel(store, (struct tw_store_name){"q", {&other, sizeof other}}, NULL));
    check(store, store_pause(store, "q"));
    check(store, store_resume(store, "q"));
    check(store, store_restored(store, true));
    check(store, store_is_restored(store));
    check(store, store_restored(store, false));
    check(store, store_replay(store, (struct tw_store_name){"q", {&id, sizeof id}}, 9));
    check(store, tw_store_flush(store));
    if (sqlite3_open(fixture->path, &db) == SQLITE_OK) {
        char text[TW_STORE_MESSAGE_SIZE];
        int error = tw_store_apply_on(db, NULL, changes, 3, text, sizeof text);
        require(error == 0 || text[0] != '\0', "an error without a message");
        sqlite3_exec(
            db,
            "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'sql', 5);"
            "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'sql', 6);"
            "INSERT INTO tw_promote(queue, id) VALUES ('q', 'sql');"
            "INSERT INTO tw_pause(queue, paused) VALUES ('q', 1), ('q', 0);"
            "INSERT INTO tw_replay(queue, id) SELECT queue, id FROM tw_look WHERE state = 'dead' LIMIT 3;"
            "SELECT * FROM tw_list; SELECT * FROM tw_look;"
            "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'sql')",
            NULL, NULL, NULL);
    }
    sqlite3_close(db);
}

static enum tw_answer answer(void *arg, struct tw_job *job)
{
    (void)arg;
    sum_up(job->queue, strlen(job->queue));
    sum_up(job->id.data, job->id.size);
    sum_up(job->payload.data, job->payload.size);
    sum_up(job->error, job->error != NULL ? strlen(job->error) : 0);
    tw_job_fail(job, "no answer");
    return job->revision % 5 == 0 ? TW_ANSWER_DEAD : job->revision % 3 == 0 ? TW_ANSWER_FAILED : TW_ANSWER_DONE;
}

/* The runner's next try is due at once. */
static void hurry(void *arg, int error, const char *text)
{
    (void)arg;
    sum_up(text, strlen(text));
    if (error != 0 && error != TW_EDEAD && error != TW_EFAILED && error != TW_EDAMAGED)
        clock_hurry(RETRY_MS);
}

static void run_on(struct tw_store *store)
{
    struct tw_store_info stats;
    put(store, "while it runs", 5);
    runner_idle(store);
    clock_pass(1);
    for (int i = 0; i < ROUNDS; i++)
        runner_idle(store);
    tw_store_stats(store, &stats, sizeof stats);
    check(store, tw_store_stop(store));
}

/* On a clock that stands still tasks that repeat come to an end. */
static void run(struct tw_store *store)
{
    struct tw_store_run_options options = {.workers = 2, .on_error = hurry};
    clock_stop(0);
    check(store, tw_store_handle(store, NULL, 0, answer, NULL));
    int error = tw_store_start(store, &options);
    check(store, error);
    if (error == 0)
        run_on(store);
    clock_go();
}

static void end(struct tw_store *store)
{
    check(store, store_replay(store, all_of("other"), 5));
    check(store, store_purge(store, all_of("q"), tw_store_now()));
    check(store, store_queues(store, read_queue, NULL));
    check(store, store_loads(store, NULL, read_load, NULL));
    check(store, store_count(store, NULL, false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.at = data, .left = size};
    struct bytes file = {malloc(valid.size), valid.size}, log = {malloc(valid_log.size), valid_log.size};
    char text[TW_STORE_MESSAGE_SIZE] = "";
    struct tw_store_options options = {.busy_ms = 10};
    struct tw_store *store = NULL;
    uint64_t first = damage_take(&input, 1);
    require(file.at != NULL && log.at != NULL, "no memory");
    memcpy(file.at, valid.at, valid.size);
    memcpy(log.at, valid_log.at, valid_log.size);
    bool tables = first % 2 == 0, in_log = first % 4 == 1;
    while (input.left > 0 && !tables)
        damage_bytes(&input, in_log ? &log : &file, in_log);
    if (first & 64)
        damage_seal(&log);
    store_remove(fixture);
    write_file("", &file);
    write_file("-wal", &log);
    free(file.at);
    free(log.at);
    damage_tables(&input, fixture->path, 3);
    int error = tw_store_open(&store, fixture->path, &options, text, sizeof text);
    require(error == 0 || text[0] != '\0', "the file is refused without a message");
    if (error == 0) {
        opened++;
        look(store, "q");
        look(store, "other");
        change(store);
        if (first & 128)
            run(store);
        end(store);
        tw_store_close(store);
    }
    return 0;
}

#ifdef TW_LIBFUZZER
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    make_valid();
    return 0;
}
#else
/* The child that runs the inputs shares it with the parent, who tells it however the child ends. */
struct progress {
    uint64_t rounds, seconds;
    _Atomic uint64_t seed;   /* of the next input, if it is made of a seed */
    _Atomic uint64_t inputs; /* that came to an end */
};

static void run_seed(struct progress *progress)
{
    uint8_t data[INPUT];
    struct rng rng;
    rng_init(&rng, progress->seed);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)rng_next(&rng);
    LLVMFuzzerTestOneInput(data, 2 + rng_below(&rng, sizeof data - 2));
    progress->seed++;
    progress->inputs++;
}

static void run_input(struct progress *progress, const char *path)
{
    static uint8_t data[1 << 16];
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    progress->inputs++;
}

static int run_all(struct progress *progress, char **paths, int n)
{
    time_t begin = time(NULL);
    uint64_t done = 0;
    for (int i = 0; i < n; i++)
        run_input(progress, paths[i]);
    for (; n == 0 && (progress->seconds > 0 ? (uint64_t)(time(NULL) - begin) < progress->seconds
                                            : done < progress->rounds);
         done++)
        run_seed(progress);
    printf("%" PRIu64 " inputs from seeds, the last was %" PRIu64 "; %d inputs from files; %" PRIu64
           " were opened; %" PRIu64 " of %" PRIu64 " calls failed\n",
           done, progress->seed - 1, n, opened, failed, calls);
    free(valid.at);
    free(valid_log.at);
    fflush(NULL);
    return 0;
}

/* Returns where the paths of inputs begin. */
static int read_options(struct progress *progress, int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        uint64_t value = strtoull(argv[at + 1], NULL, 0);
        if (strcmp(argv[at], "--seed") == 0)
            progress->seed = value;
        else if (strcmp(argv[at], "--rounds") == 0)
            progress->rounds = value;
        else if (strcmp(argv[at], "--seconds") == 0)
            progress->seconds = value;
    }
    return at;
}

/* Waits for the end of the child, as long as one input after the other comes to an end. */
static int exited(pid_t child, const struct progress *progress)
{
    int status = -1;
    pid_t got = 0;
    while (got == 0) {
        uint64_t inputs = progress->inputs;
        EVENTUALLY_TOLD((got = waitpid(child, &status, WNOHANG)) != 0 || progress->inputs != inputs,
                        "a hang after %" PRIu64 " inputs, with seed %" PRIu64, inputs, progress->seed);
    }
    return status;
}

int main(int argc, char **argv)
{
    int status = -1;
    struct progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        return 2;
    progress->seed = 1;
    progress->rounds = extent(60, 100, 4000);
    int at = read_options(progress, argc, argv);
    make_valid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(run_all(progress, argv + at, argc - at));
    }
    if (child > 0)
        status = exited(child, progress);
    if (status != 0)
        fprintf(stderr, "fuzz_store: wait status %#x with seed %" PRIu64 "\n", (unsigned)status,
                progress->seed);
    store_remove(fixture);
    int error = rmdir(fixture->folder);
    free(fixture);
    free(valid.at);
    free(valid_log.at);
    munmap(progress, sizeof *progress);
    return status == 0 && error == 0 ? 0 : 1;
}
#endif
