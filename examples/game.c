/* SPDX-License-Identifier: MIT
 *
 * Skill cool-downs and buffs of a game, in frames. A tick of the wheel is a frame, and a second has sixty
 * frames. A buff that is cast again lasts longer instead of ending twice. A poison hurts every second, five
 * times.
 */
#include <stdio.h>
#include <tickwheel/wheel.h>

enum { FPS = 60 };

struct effect {
    const char *name, *ends;
    int times; /* further ends after the next */
    struct tw_timer timer;
};

static struct tw_wheel *wheel;

static void cast(struct effect *effect, int seconds)
{
    tw_wheel_move_in(wheel, &effect->timer, (uint64_t)seconds * FPS);
    printf("%5.2f s  %s, for %d s\n", (double)tw_wheel_now(wheel) / FPS, effect->name, seconds);
}

static void end(struct effect *effect)
{
    printf("%5.2f s  %s %s\n", (double)tw_wheel_now(wheel) / FPS, effect->name, effect->ends);
    if (effect->times > 0) {
        effect->times--;
        tw_wheel_add_in(wheel, &effect->timer, FPS);
    }
}

int main(void)
{
    struct tw_geometry geometry = TW_GEOMETRY_SMALL;
    struct effect fireball = {.name = "fireball", .ends = "is ready again"},
                  shield = {.name = "shield", .ends = "is gone"},
                  poison = {.name = "poison", .ends = "hurts", .times = 4};
    if (tw_wheel_new(&wheel, &geometry, 0) != 0)
        return 1;
    cast(&fireball, 8);
    cast(&shield, 5);
    for (uint64_t frame = 1; frame <= 12 * FPS; frame++) {
        struct tw_timer *timer;
        while ((timer = tw_wheel_poll(wheel, frame)) != NULL)
            end(TW_CONTAINER(timer, struct effect, timer));
        if (frame == 2 * FPS)
            cast(&poison, 1); /* it hurts first after 1 s */
        if (frame == 3 * FPS + 30)
            cast(&shield, 5); /* again: it now lasts until 8.5 s */
    }
    tw_wheel_free(wheel);
    return 0;
}
