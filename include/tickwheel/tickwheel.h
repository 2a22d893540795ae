/* SPDX-License-Identifier: MIT
 *
 * tickwheel/tickwheel.h - the wheel and the scheduler in one.
 */
#ifndef TICKWHEEL_TICKWHEEL_H
#define TICKWHEEL_TICKWHEEL_H

#include <tickwheel/sched.h>
#include <tickwheel/version.h>
#include <tickwheel/wheel.h>

#endif
