/* SPDX-License-Identifier: MIT
 *
 * Orders that time out, in an SQLite file that survives the end of the process. A child process places three
 * orders, and is killed in the middle of its work for the first one. Then a new process opens the file: it does
 * this work again, as the second attempt, and goes on with the others.
 *
 * An order and its timeout are rows of one file, and change in one transaction. So there is no order without
 * its timeout, wherever the process ends.
 *
 * Build it with `cc store.c $(pkg-config --cflags --libs tickwheel_store sqlite3)`.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tickwheel/store.h>
#include <unistd.h>

/* The two connections of a process: the program's own, for its tables, and the store's. */
struct shop {
    sqlite3 *db;
    struct tw_store *store;
    bool dies; /* kills its process during its first work */
};

static void fail(const char *message)
{
    fprintf(stderr, "store: %s\n", message);
    exit(1);
}

static void sql(struct shop *shop, const char *text)
{
    if (sqlite3_exec(shop->db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail(sqlite3_errmsg(shop->db));
}

static struct shop shop_open(bool dies)
{
    struct shop shop = {.dies = dies};
    char message[TW_STORE_MESSAGE_SIZE];
    if (tw_store_open(&shop.store, "shop.db", NULL, message, sizeof message) != 0)
        fail(message);
    if (sqlite3_open("shop.db", &shop.db) != SQLITE_OK)
        fail(sqlite3_errmsg(shop.db));
    sqlite3_busy_timeout(shop.db, 5000);
    sql(&shop, "CREATE TABLE IF NOT EXISTS orders(id TEXT PRIMARY KEY, state TEXT)");
    return shop;
}

static void shop_close(struct shop *shop)
{
    tw_store_close(shop->store); /* waits until the handlers have returned */
    sqlite3_close(shop->db);
}

/* ---- orders ---------------------------------------------------------------------------------------------- */

/* Changes an order's row and its task in one transaction. */
static void change(struct shop *shop, const char *text, struct tw_store_change change)
{
    char message[TW_STORE_MESSAGE_SIZE];
    change.task.queue = "unpaid";
    sql(shop, "BEGIN IMMEDIATE");
    sql(shop, text);
    if (tw_store_apply_on(shop->db, NULL, &change, 1, message, sizeof message) != 0)
        fail(message);
    sql(shop, "COMMIT");
}

static void place(struct shop *shop, const char *order, uint64_t within_ms)
{
    char text[128];
    struct tw_store_delayed task = {.id = tw_text(order), .due_ms = tw_store_now() + within_ms};
    sqlite3_snprintf(sizeof text, text, "INSERT INTO orders VALUES (%Q, 'placed')", order);
    change(shop, text, (struct tw_store_change){.verb = TW_STORE_VERB_PUT, .task = task});
    printf("order %s is placed\n", order);
}

static void pay(struct shop *shop, const char *order)
{
    char text[128];
    sqlite3_snprintf(sizeof text, text, "UPDATE orders SET state = 'paid' WHERE id = %Q", order);
    change(shop, text, (struct tw_store_change){.verb = TW_STORE_VERB_CANCEL, .task = {.id = tw_text(order)}});
    printf("order %s is paid\n", order);
}

/* The handler of the queue, called when a task is due. The attempt is on the disk before the call, so after a
 * kill the next process calls it again. The work may therefore come twice; here that changes nothing. */
static enum tw_answer cancel_order(void *arg, struct tw_job *job)
{
    struct shop *shop = arg;
    char text[256];
    printf("order %.*s was not paid, attempt %u\n", (int)job->id.size, (const char *)job->id.data,
           job->attempt);
    if (shop->dies)
        raise(SIGKILL);
    sqlite3_snprintf(sizeof text, text, "UPDATE orders SET state = 'cancelled' WHERE id = '%.*q'",
                     (int)job->id.size, (const char *)job->id.data);
    if (sqlite3_exec(shop->db, text, NULL, NULL, NULL) == SQLITE_OK)
        return TW_ANSWER_DONE;
    tw_job_fail(job, sqlite3_errmsg(shop->db));
    return TW_ANSWER_FAILED;
}

/* ---- the two processes ----------------------------------------------------------------------------------- */

static void start(struct shop *shop)
{
    char message[TW_STORE_MESSAGE_SIZE];
    if (tw_store_handle(shop->store, "unpaid", 1, cancel_order, shop) == 0 &&
        tw_store_start(shop->store, NULL) == 0)
        return;
    tw_store_message(shop->store, message, sizeof message);
    fail(message);
}

static void first_process(void)
{
    struct shop shop = shop_open(true);
    place(&shop, "1", 20);
    place(&shop, "2", 40);
    place(&shop, "3", 60);
    pay(&shop, "2");
    start(&shop);
    pause(); /* until the handler kills the process */
}

static void show(void *arg, const struct tw_store_task *task)
{
    (void)arg;
    printf("  %.*s, attempts so far: %u\n", (int)task->id.size, (const char *)task->id.data, task->attempt);
}

static int show_order(void *arg, int n, char **columns, char **names)
{
    (void)arg, (void)n, (void)names;
    printf("order %s: %s\n", columns[0], columns[1]);
    return 0;
}

static void second_process(void)
{
    struct shop shop = shop_open(false);
    struct tw_store_info stats;
    puts("tasks in the file:");
    tw_store_scan(shop.store, "unpaid", NULL, show, NULL);
    start(&shop);
    do {
        usleep(10000); /* a program would do something else */
        tw_store_stats(shop.store, &stats, sizeof stats);
    } while (stats.done < 2);
    sqlite3_exec(shop.db, "SELECT id, state FROM orders ORDER BY id", show_order, NULL, NULL);
    shop_close(&shop);
}

int main(void)
{
    char folder[] = "/tmp/tickwheel-shop-XXXXXX";
    int status;
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        fail("no folder in /tmp");
    setvbuf(stdout, NULL, _IONBF, 0); /* a line that is printed survives the kill too */
    pid_t child = fork();             /* before the store is opened: a store belongs to one process */
    if (child == 0)
        first_process();
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        fail("the first process was not killed");
    puts("the process is killed; another one opens the file");
    second_process();
    unlink("shop.db");
    unlink("shop.db-tickwheel"); /* the lock of the process that runs the tasks */
    rmdir(folder);
    return 0;
}
