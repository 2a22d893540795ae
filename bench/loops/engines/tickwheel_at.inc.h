/* SPDX-License-Identifier: MIT
 *
 * The clock is read once in an iteration, as a server with many heartbeats does it.
 */
static uint64_t due_ns;

static inline void engine_turn(void)
{
    due_ns = tw_loop_now(loop) + idle_ns;
}

static inline void engine_beat(struct connection *connection)
{
    tw_loop_move_at(loop, &connection->timer, due_ns);
}
