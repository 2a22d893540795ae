/* SPDX-License-Identifier: MIT
 *
 * The C++ interface with tw_timer, which the program itself must cancel.
 */
#define TIMER tw_timer
#define RUN run_cpp_raw
#define object object_raw
#include "cpp.cpp"
