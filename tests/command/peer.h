/* SPDX-License-Identifier: MIT
 *
 * The other end of the command's connections: connect() is wrapped (-Wl,--wrap=connect), and each connection
 * leads to a peer in this process, whose answers are a part of the input.
 *
 *     input:  the connections, with a byte 0x1D between them
 *     connection:  the answers, with a byte 0x1E between them
 *
 * A peer either gives all its answers at once, or one answer each time that it is asked. Behind its last answer
 * it closes the connection, so that no reader waits.
 */
#ifndef TESTS_COMMAND_PEER_H
#define TESTS_COMMAND_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins with the input. `at_once`: the answers come without being asked for. */
void peers_begin(const uint8_t *data, size_t size, bool at_once);

/* Lets each peer that was asked give its next answer. */
void peers_turn(void);

/* Closes all peers. */
void peers_end(void);

/* The path of a Unix socket that leads to a peer. */
#define PEER_PATH "/no/such/socket"

#endif
