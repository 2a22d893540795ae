/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_WEIGHT_H
#define COMMAND_WEIGHT_H

/* Bytes of a timer, and of a task of the scheduler: one that runs once without a key, one with a period, one
 * with a key. */
enum { WEIGHT_TIMER = 32, WEIGHT_TASK = 64, WEIGHT_TASK_DETAILED = 104, WEIGHT_TASK_KEYED = 96 };

/* Returns the measured bytes of a task in Redis with an id of 12 bytes and a payload of `payload` bytes. */
double weight_redis_task(double payload);

#endif
