/* SPDX-License-Identifier: MIT */
#include "shared.h"

struct tw__redis_shared tw__redis_shared;

uint64_t tw__redis_now_ms(void)
{
    return (uint64_t)RedisModule_Milliseconds();
}
