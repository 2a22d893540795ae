/* SPDX-License-Identifier: MIT
 *
 * tickwheel/tickwheel.h - the wheel, the scheduler and durations, in one header.
 */
#ifndef TICKWHEEL_TICKWHEEL_H
#define TICKWHEEL_TICKWHEEL_H

#include <tickwheel/duration.h>
#include <tickwheel/sched.h>
#include <tickwheel/version.h>
#include <tickwheel/wheel.h>

#endif
