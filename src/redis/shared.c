/* SPDX-License-Identifier: MIT */
#include "shared.h"

struct tw__shared tw__shared;

uint64_t tw__now_ms(void)
{
    return (uint64_t)RedisModule_Milliseconds();
}
