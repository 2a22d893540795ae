/* SPDX-License-Identifier: MIT
 *
 * Assertions of the callers' duties. TW_DEBUG selects them:
 *
 *     0    no assertions
 *     1    cheap assertions
 *     2    also the checkers, which look at a whole structure and name the invariant that is broken
 *
 * TW_DEBUG alone decides: RelWithDebInfo, MinSizeRel and many a parent project define NDEBUG.
 */
#ifndef TW_BASE_ASSERT_H
#define TW_BASE_ASSERT_H

#ifndef TW_DEBUG
#define TW_DEBUG 0
#endif

/* Coverage leaves out the branches of this macro only: no correct program takes the second branch. */
#if TW_DEBUG > 0 || defined(__clang_analyzer__)
#undef NDEBUG
#include <assert.h>
#define TW_ASSERT(condition) assert(condition)
#else
#define TW_ASSERT(condition) ((void)0)
#endif

/* The same, for a condition whose check walks through a whole structure. */
#if TW_DEBUG > 1
#define TW_ASSERT_WALK(condition) TW_ASSERT(condition)
#else
#define TW_ASSERT_WALK(condition) ((void)0)
#endif

#endif
