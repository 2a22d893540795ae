/* SPDX-License-Identifier: MIT
 *
 * The C interface once more: how far this is from the first shows what a difference means.
 */
#define RUN run_c_again
#include "c.c"
