/* SPDX-License-Identifier: MIT
 *
 * Thread slots: numbers for the threads that file tasks.
 */
#ifndef TW_SCHED_THREAD_SLOT_H
#define TW_SCHED_THREAD_SLOT_H

#include <stdint.h>

enum { TW__SCHED_THREADS = 1024 }; /* slots */

/* The slot of the calling thread, from 0. The thread takes the lowest free slot with its first call, and keeps
 * it until it ends. */
uint32_t tw__sched_thread_slot(void);

#endif
