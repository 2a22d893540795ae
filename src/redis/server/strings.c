/* SPDX-License-Identifier: MIT */
#include "strings.h"

#include <base/error_text.h>
#include <string.h>

#include "queues/route.h"

enum { SHOWN = TW__REDIS_SHOWN_MAX - sizeof "..." };

RedisModuleString *tw__redis_string_new(struct tw__redis_bytes bytes)
{
    return RedisModule_CreateString(NULL, bytes.at, bytes.size);
}

RedisModuleString *tw__redis_string_of_number(uint64_t number)
{
    return RedisModule_CreateStringFromLongLong(NULL, (long long)number);
}

RedisModuleString *tw__redis_string_of_target(struct tw__redis_route *route)
{
    if (route->target == NULL)
        route->target = tw__redis_string_new(tw__redis_route_plan(route).target);
    return route->target;
}

struct tw__redis_bytes tw__redis_string_bytes(const RedisModuleString *string)
{
    struct tw__redis_bytes bytes;
    bytes.at = RedisModule_StringPtrLen(string, &bytes.size);
    return bytes;
}

const char *tw__redis_string_shown(const RedisModuleString *string, char *text)
{
    struct tw__redis_bytes bytes = tw__redis_string_bytes(string);
    size_t i, size = tw__text_size(bytes.at, bytes.size, SHOWN);
    for (i = 0; i < size; i++)
        text[i] = (unsigned char)bytes.at[i] < 0x20 || bytes.at[i] == 0x7F ? '?' : bytes.at[i];
    memcpy(text + i, i < bytes.size ? "..." : "", i < bytes.size ? sizeof "..." : 1);
    return text;
}
