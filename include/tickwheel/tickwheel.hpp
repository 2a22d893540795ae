/* SPDX-License-Identifier: MIT
 *
 * tickwheel/tickwheel.hpp - all of Tickwheel for C++17: the wheel and the scheduler.
 */
#ifndef TICKWHEEL_TICKWHEEL_HPP
#define TICKWHEEL_TICKWHEEL_HPP

#include <tickwheel/sched.hpp>
#include <tickwheel/version.h>
#include <tickwheel/wheel.hpp>

#endif
