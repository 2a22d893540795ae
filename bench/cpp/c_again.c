/* SPDX-License-Identifier: MIT
 *
 * The C interface once more. The difference between the two C runs is the noise of the measurement.
 */
#define RUN run_c_again
#include "c.c"
