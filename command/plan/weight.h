/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_WEIGHT_H
#define COMMAND_WEIGHT_H

/* Bytes of a timer, and of tasks as src/sched and src/redis have them. */
enum { WEIGHT_TIMER = 32, WEIGHT_TASK = 64, WEIGHT_TASK_DETAILED = 112 };

/* Returns the bytes of a task in Redis with a payload of that size and an id of 12 bytes, as measured. */
double weight_redis_task(double payload);

#endif
