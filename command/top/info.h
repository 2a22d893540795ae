/* SPDX-License-Identifier: MIT
 *
 * The reply of a Redis server to INFO, as a part of a reading.
 */
#ifndef COMMAND_INFO_H
#define COMMAND_INFO_H

#include "reading.h"

/* Reads the text of INFO: the fields of the module, and the role and the version of the server. Returns false
 * if the server has not loaded the module; then the reading is unchanged. */
bool info_read(const char *info, struct reading *reading);

#endif
