/* SPDX-License-Identifier: MIT
 *
 * Units of time.
 */
#ifndef TW_BASE_TIME_H
#define TW_BASE_TIME_H

enum { TW__NS_PER_S = 1000000000 };

#endif
