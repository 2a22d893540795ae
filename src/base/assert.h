/* SPDX-License-Identifier: MIT
 *
 * Assertions of what callers have to keep. TW_DEBUG is 0: none; 1: those that cost little; 2: also the
 * checkers, which look at a whole structure and name the invariant that is broken.
 */
#ifndef TW_BASE_ASSERT_H
#define TW_BASE_ASSERT_H

#ifndef TW_DEBUG
#define TW_DEBUG 0
#endif

/* The one macro whose branches coverage leaves out: no correct program takes the other one. */
#if TW_DEBUG > 0 || defined(__clang_analyzer__)
#include <assert.h>
#define TW_ASSERT(condition) assert(condition)
#else
#define TW_ASSERT(condition) ((void)0)
#endif

/* The same for a condition that takes a walk through a whole structure. */
#if TW_DEBUG > 1
#define TW_ASSERT_WALK(condition) TW_ASSERT(condition)
#else
#define TW_ASSERT_WALK(condition) ((void)0)
#endif

#endif
