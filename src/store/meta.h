/* SPDX-License-Identifier: MIT
 *
 * The columns of tw_meta besides its format. A table without one of them is none of ours of this format.
 */
#ifndef TW_STORE_META_H
#define TW_STORE_META_H

#define TW__STORE_META_COLUMNS                                                                                 \
    "seq", "run", "changes", "restored", "clock_ms", "tries", "backoff_ms", "factor", "backoff_max_ms", "jitter"

#endif
