/* timeline.h - a step of a chain in the terminal, a line a time step: which layer runs, and whose outputs are there.

       ●●●▶        layers 1 to 3 have left their outputs; layer 4 runs forward
       ●··●◀       layer 5's backward, in a chain that has dropped the outputs of layers 2 and 3

   It is read off the list of instructions alone (gcp_list_print): a value lives from where it is made to its last
   reader before it is made again. */
#ifndef TIMELINE_H
#define TIMELINE_H
#include <stdio.h>
#include <string.h>

enum { TIMELINE_LAYERS = 64, TIMELINE_LINES = 1024, TIMELINE_NAME = 64 };
typedef struct timeline {
    char name[TIMELINE_LAYERS][TIMELINE_NAME];
    int layers, lines, layer[TIMELINE_LINES];
    char kind[TIMELINE_LINES];                          /* F, R or B of a layer */
    char line[128];
    size_t used;
} timeline;

static inline int timeline_layer(const timeline *t, const char *name)
{
    for (int i = 0; i < t->layers; i++) if (!strcmp(t->name[i], name)) return i;
    return -1;
}

/* Takes in a line such as "F segment[0]/tanh[3]"; others than a tanh's are no layers. */
static inline void timeline_line(timeline *t)
{
    const char *name = t->line + 2;
    if (!strstr(name, "tanh") || t->lines == TIMELINE_LINES) return;
    if (t->line[0] == 'F' && t->layers < TIMELINE_LAYERS && strlen(name) < TIMELINE_NAME)
        memcpy(t->name[t->layers++], name, strlen(name) + 1);
    t->layer[t->lines] = timeline_layer(t, name);
    t->kind[t->lines++] = t->line[0];
}

static inline void timeline_write(void *context, const char *s, size_t n)
{
    timeline *t = context;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\n' && t->used + 1 < sizeof t->line) t->line[t->used++] = s[i];
        if (s[i] != '\n') continue;
        t->line[t->used] = 0;
        timeline_line(t);
        t->used = 0;
    }
}

/* Whether layer i's output is there during line `now`: it was made, and somebody reads it before it is made again: the
   next layer's forward, or its own backward. */
static inline int timeline_there(const timeline *t, int i, int now)
{
    int made = 0;
    for (int k = 0; k < now; k++) made |= t->layer[k] == i && t->kind[k] != 'B';
    for (int k = now; made && k < t->lines; k++) {
        if (t->layer[k] == i) return t->kind[k] == 'B';
        if (t->layer[k] == i + 1 && t->kind[k] != 'B') return 1;
    }
    return 0;
}

static inline void timeline_print(const gcp_plan *plan)
{
    static timeline t;
    int most = 0;
    memset(&t, 0, sizeof t);
    gcp_list_print(plan, (gcp_writer) { timeline_write, &t });
    for (int k = 0; k < t.lines; k++) {
        int there = 0;
        printf("%4d  ", k + 1);
        for (int i = 0; i < t.layers; i++) {
            const int here = t.layer[k] == i, is = timeline_there(&t, i, k);
            there += is || (here && t.kind[k] != 'B');
            printf("%s", here ? t.kind[k] == 'B' ? "◀" : "▶" : is ? "●" : "·");
        }
        printf("  %2d there%s\n", there, t.kind[k] == 'R' ? ", run again" : "");
        if (there > most) most = there;
    }
    printf("At most %d of %d outputs are there at once (the peak has two tensors more: the input and the gradient).\n"
           "▶ runs forward, ◀ backward, ● its output is there.\n", most, t.layers);
}
#endif
