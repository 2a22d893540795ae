# SPDX-License-Identifier: MIT
"""How Tickwheel is built: the layers, the threads of the scheduler, the way of a task in the Redis module."""
from svg import Sheet


def room(sheet, box, name, lines, colour="soft"):
    """A rounded box with a name in it and small lines below the name. box is (left, top, right, bottom)."""
    left, top, right, bottom = box
    sheet.rect(left, top, right - left, bottom - top, "", 5, outline=colour)
    sheet.text((left + right) / 2, top + 19, name, f"bold {colour}" if colour != "soft" else "bold", "middle")
    sheet.lines((left + right) / 2, top + 37, lines, "soft small", "middle", 16)


def layers(_):
    sheet = Sheet(
        "layers", 380, "The layers of Tickwheel",
        "An arrow means: uses. The wheel and the base below it carry everything. The scheduler and the Redis "
        "module stand on the wheel and on the rules of a task, the store on the scheduler, the event loops on "
        "the wheel and, for a scheduler's callbacks, on the scheduler. The command stands on the store, the "
        "scheduler and the wheel.")
    sheet.text(8, 44, "An arrow: includes and calls. Arrows past a layer are left out.", "soft small")
    room(sheet, (8, 58, 118, 142), "redis", ["the server's", "memory, clock", "and thread"], "pink")
    room(sheet, (126, 58, 226, 142), "command", ["run, put, tasks,", "top, plan,", "replay, draw"], "gold")
    room(sheet, (254, 58, 354, 142), "store", ["tasks in an", "SQLite file"], "blue")
    room(sheet, (362, 58, 472, 142), "loops", ["epoll, libuv,", "libev, libevent,", "GLib"], "green")
    room(sheet, (8, 172, 118, 234), "queues", ["of redis; knows", "no server"], "pink")
    room(sheet, (126, 172, 420, 234), "sched", ["clock, threads, keys"], "blue")
    room(sheet, (62, 258, 250, 288), "task: the rules", [], "gold")
    room(sheet, (8, 302, 472, 332), "wheel: no malloc, no clock, no threads", [], "ours")
    room(sheet, (8, 346, 472, 376), "base: assertions, lists, sums", [])
    for x, top, bottom in [(63, 142, 170), (176, 142, 170), (304, 142, 170), (391, 142, 170), (446, 142, 300),
                           (35, 234, 300), (90, 234, 256), (188, 234, 256), (335, 234, 300), (240, 332, 344)]:
        sheet.arrow(x, top, x, bottom, "soft")
    sheet.arrow(226, 100, 252, 100, "soft")
    sheet.text(384, 162, "executors", "soft small", "end")
    return sheet


def threads(_):
    sheet = Sheet(
        "threads", 332, "The threads of the scheduler",
        "Any thread files a task in a shard, under that shard's lock. The timer thread sleeps until a "
        "shard has work, and moves the tasks that are due from the wheel to the ready list. A worker, "
        "the timer thread or your own executor takes each task from the ready list and runs its "
        "callback without a lock.")
    room(sheet, (8, 44, 130, 148), "your threads",
         ["add, move, cancel", "from anywhere,", "also from inside", "a callback"], "green")
    room(sheet, (166, 44, 320, 148), "shard 0",
         ["one lock around", "a wheel, its tasks,", "their keys and", "the ready list"], "ours")
    room(sheet, (166, 164, 320, 194), "shard 1, 2, ...", [], "ours")
    room(sheet, (356, 44, 472, 194), "timer thread",
         ["sleeps until", "there is work;", "moves due tasks", "to ready lists"], "blue")
    sheet.arrow(130, 84, 164, 84, "soft")
    sheet.arrow(130, 136, 164, 176, "soft")
    sheet.arrow(356, 84, 322, 84, "soft")
    sheet.arrow(356, 178, 322, 178, "soft")
    sheet.arrow(243, 194, 243, 230, "soft")
    sheet.text(252, 216, "by ticks, across shards", "soft small")
    room(sheet, (8, 232, 472, 326), "your callback, without a lock, on one of", [
        "the timer thread: no workers, the default",
        "a worker: options.workers threads share the ready lists",
        "a thread of yours: options.execute hands the task over"], "pink")
    return sheet


def delivery(_):
    sheet = Sheet(
        "delivery", 512, "From TW.SEND to a consumer",
        "TW.SEND files a task in its queue, which is a key, and in the wheel of the process. The "
        "server's timer rings at the next tick that has work. The tick hands each task that is due to "
        "the delivery, which writes it to its target by XADD or RPUSH and removes it from the "
        "queue in the same transaction. A refused delivery waits, and at last its task is dead.")
    for box, name, lines, colour in [
            ((8, 44, 232, 94), "client", ["TW.SEND, TW.MOVE, TW.CANCEL"], "green"),
            ((8, 118, 232, 184), "put.c, move.c",
             ["the task joins its queue,", "a key, and the one wheel"], "pink"),
            ((8, 208, 232, 274), "the wheel",
             ["alarm.c sets the server's timer", "to the next tick with work"], "ours"),
            ((8, 298, 232, 348), "tick.c", ["takes the tasks that are due"], "pink"),
            ((8, 372, 232, 438), "deliver.c, call.c",
             ["XADD or RPUSH, and the task", "leaves: one transaction"], "pink"),
            ((280, 372, 472, 438), "the target", ["a Stream or a List;", "XREADGROUP or BLPOP"], "green"),
            ((280, 282, 472, 348), "batch.c",
             ["TW.FIRED, to the AOF and", "the replicas: all or nothing"], "pink"),
            ((280, 192, 472, 258), "replica",
             ["has a wheel too; delivers", "only once it is promoted"], "blue"),
            ((8, 462, 472, 510), "refused?",
             ["the route waits and tries again; at last the task is dead"],
             "soft")]:
        room(sheet, box, name, lines, colour)
    for top, bottom in [(94, 116), (184, 206), (274, 296), (348, 370), (438, 460)]:
        sheet.arrow(120, top, 120, bottom, "soft")
    sheet.arrow(232, 405, 278, 405, "soft")
    sheet.arrow(232, 380, 278, 334, "soft")
    sheet.arrow(376, 282, 376, 260, "soft")
    return sheet
