/* SPDX-License-Identifier: MIT
 *
 * Assertions: the caller's bugs, where TW_DEBUG is 1 or more. The wheel and the scheduler have the same in their own
 * headers.
 */
#ifndef TW_BASE_ASSERT_H
#define TW_BASE_ASSERT_H

#if defined(TW_DEBUG) && TW_DEBUG >= 1
#include <assert.h>
#define TW_ASSERT(condition) assert(condition)
#else
#define TW_ASSERT(condition) ((void)0)
#endif

#endif
