/* SPDX-License-Identifier: MIT */
#include "strings.h"

#include <string.h>

#include "schedules/route.h"

enum { SHOWN = TW__SHOWN_MAX - sizeof "..." };

RedisModuleString *tw__string_new(struct tw__bytes bytes)
{
    return RedisModule_CreateString(NULL, bytes.at, bytes.size);
}

RedisModuleString *tw__string_of_number(uint64_t number)
{
    return RedisModule_CreateStringFromLongLong(NULL, (long long)number);
}

RedisModuleString *tw__string_of_target(struct tw__route *route)
{
    if (route->target == NULL)
        route->target = tw__string_new(tw__route_plan(route).target);
    return route->target;
}

struct tw__bytes tw__string_bytes(const RedisModuleString *string)
{
    struct tw__bytes bytes;
    bytes.at = RedisModule_StringPtrLen(string, &bytes.size);
    return bytes;
}

const char *tw__string_shown(const RedisModuleString *string, char *text)
{
    struct tw__bytes bytes = tw__string_bytes(string);
    size_t i;
    for (i = 0; i < bytes.size && i < SHOWN; i++)
        text[i] = (unsigned char)bytes.at[i] < 0x20 || bytes.at[i] == 0x7F ? '?' : bytes.at[i];
    memcpy(text + i, i < bytes.size ? "..." : "", i < bytes.size ? sizeof "..." : 1);
    return text;
}
