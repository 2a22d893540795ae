/* SPDX-License-Identifier: MIT
 *
 * A stranger's program on the installed wheel, valid in C11 and in C++17. Prints the version of the header.
 */
#include <stdio.h>
#include <tickwheel/version.h>
#include <tickwheel/wheel.h>

int main(void)
{
    struct tw_wheel *wheel;
    struct tw_geometry geometry = TW_GEOMETRY_DEFAULT;
    struct tw_timer timer;
    tw_timer_init(&timer);
    if (tw_wheel_new(&wheel, &geometry, 0) != 0 || tw_wheel_add_in(wheel, &timer, 5) != 0)
        return 1;
    int good = tw_wheel_poll(wheel, 4) == NULL && tw_wheel_poll(wheel, 5) == &timer;
    tw_wheel_free(wheel);
    puts(TW_VERSION);
    return good ? 0 : 1;
}
