/* SPDX-License-Identifier: MIT
 *
 * A stranger's program on the installed store, valid in C11 and in C++17. It puts a task into a file of the
 * present folder, finds it again, and cancels it. Prints the version of the header.
 */
#include <stdio.h>
#include <string.h>
#include <tickwheel/store.h>
#include <tickwheel/version.h>

int main(void)
{
    struct tw_store *store;
    struct tw_store_delayed task;
    char message[TW_STORE_MESSAGE_SIZE];
    enum tw_cancel found = TW_CANCEL_GONE;
    uint64_t count = 0;
    if (tw_store_open(&store, "use_store.db", NULL, message, sizeof message) != 0) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    memset(&task, 0, sizeof task);
    task.queue = "orders";
    task.id = tw_text("order:42");
    task.due_ms = tw_store_now() + 1800000;
    if (tw_store_put(store, &task, 0, NULL) != 0 || tw_store_count(store, "orders", false, &count) != 0 ||
        count != 1 || tw_store_cancel(store, tw_store_named("orders", "order:42"), &found) != 0)
        return 1;
    tw_store_close(store);
    remove("use_store.db");
    puts(TW_VERSION);
    return found == TW_CANCEL_CANCELLED ? 0 : 1;
}
