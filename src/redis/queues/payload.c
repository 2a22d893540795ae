/* SPDX-License-Identifier: MIT
 *
 * Payloads: reading them, and validating bytes that may be a payload.
 */
#include "payload.h"

#include <base/assert.h>

#include "bytes.h"

struct tw__redis_bytes tw__redis_payload_next(struct tw__redis_payload *payload)
{
    TW_ASSERT(payload->count > 0);
    struct tw__redis_bytes string = tw__redis_varint_get_bytes(payload->at);
    payload->at = string.at + string.size;
    payload->count--;
    return string;
}

uint64_t tw__redis_payload_bytes(struct tw__redis_payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0)
        bytes += tw__redis_payload_next(&payload).size;
    return bytes;
}

uint64_t tw__redis_payload_field_bytes(struct tw__redis_payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0) {
        bytes += tw__redis_payload_next(&payload).size;
        if (payload.count > 0)
            tw__redis_payload_next(&payload);
    }
    return bytes;
}

bool tw__redis_payload_valid(struct tw__redis_bytes packed)
{
    const char *end = packed.at + packed.size;
    uint64_t count, size;
    const char *at = tw__redis_varint_take(packed.at, end, &count);
    if (at == NULL || count == 0 || count > UINT32_MAX)
        return false;
    for (; count > 0; count--) {
        at = tw__redis_varint_take(at, end, &size);
        if (at == NULL || size > (size_t)(end - at))
            return false;
        at += size;
    }
    return at == end;
}
