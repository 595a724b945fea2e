/* The fastest list of a small graph in a slab, addresses and moves included, by trying all: Dijkstra's algorithm over
   (next op, address of each live value). Text as graphs.h writes it; addresses in units of 64 bytes. It shares nothing
   with the planner. */
#ifndef ADDRESSES_H
#define ADDRESSES_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_OPS = 31, ADDRESS_STATES = 1 << 16, ADDRESS_SECONDS = 4096, ADDRESS_NONE = 255, ADDRESS_UNIT = 64 };

typedef struct address_op { char letter; int seconds, units, space, reads, read[ADDRESS_OPS], last; } address_op;
typedef struct address_state { uint8_t next, at[ADDRESS_OPS]; } address_state;

typedef struct addresses {
    int ops, forward, slab, states;
    address_op op[ADDRESS_OPS];
    address_state state[ADDRESS_STATES];
    int cost[ADDRESS_STATES], behind[ADDRESS_STATES], table[2 * ADDRESS_STATES], bucket[ADDRESS_SECONDS];
} addresses;

static inline int address_named(char names[][16], int count, const char *name)
{
    for (int i = 0; i < count; i++) if (!strcmp(names[i], name)) return i;
    return -1;
}

/* 0: too many ops. */
static inline int addresses_read(addresses *a, const char *text)
{
    char names[ADDRESS_OPS][16];
    a->ops = a->forward = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        address_op *op = &a->op[a->ops];
        int bytes, space, used;
        char name[16];
        if (*line == '#') continue;
        if (a->ops == ADDRESS_OPS) return 0;
        sscanf(line, "%c %15s %d %d %d%n", &op->letter, names[a->ops], &op->seconds, &bytes, &space, &used);
        op->units = bytes / ADDRESS_UNIT; op->space = space / ADDRESS_UNIT; op->reads = 0; op->last = a->ops;
        for (line += used; *line != '\n'; line += used) {
            sscanf(line, " %15s%n", name, &used);
            const int x = address_named(names, a->ops, name);
            op->read[op->reads++] = x;
            a->op[x].last = a->ops;
        }
        a->forward += op->letter != 'b';
        a->ops++;
    }
    return 1;
}

static inline void address_reach(addresses *a, const address_state *s, int cost)
{
    uint64_t hash = s->next;
    for (int i = 0; i < a->ops; i++) { hash = (hash ^ s->at[i]) * 0x100000001B3u; hash ^= hash >> 23; }
    int k = (int)(hash % (2 * ADDRESS_STATES)), n;
    while ((n = a->table[k] - 1) >= 0 && memcmp(&a->state[n], s, sizeof *s)) k = (k + 1) % (2 * ADDRESS_STATES);
    if (n < 0 && a->states == ADDRESS_STATES) return;
    if (n < 0) { n = a->states++; a->table[k] = n + 1; a->state[n] = *s; a->cost[n] = INT32_MAX; }
    if (a->cost[n] <= cost || cost >= ADDRESS_SECONDS) return;
    /* where it waits in a dearer bucket, it is a copy of itself there */
    if (a->cost[n] < INT32_MAX) {
        if (a->states == ADDRESS_STATES) return;
        a->state[a->states] = *s; a->table[k] = a->states + 1; a->cost[n] = -1; n = a->states++;
    }
    a->cost[n] = cost; a->behind[n] = a->bucket[cost]; a->bucket[cost] = n + 1;
}

static inline int address_free(const addresses *a, const address_state *s, int units, int at)
{
    for (int i = 0; i < a->ops; i++)
        if (s->at[i] != ADDRESS_NONE && at < s->at[i] + a->op[i].units && s->at[i] < at + units) return 0;
    return at + units <= a->slab;
}

/* Runs op x, at each address. */
static inline void address_run(addresses *a, const address_state *from, int x, int cost)
{
    const address_op *op = &a->op[x];
    for (int i = 0; i < op->reads; i++) if (from->at[op->read[i]] == ADDRESS_NONE) return;
    for (int i = 0; i < a->ops; i++) if (from->at[i] != ADDRESS_NONE && from->at[i] < op->space) return;
    for (int at = op->space; at + op->units <= a->slab; at++) {
        address_state s = *from;
        if (!address_free(a, from, op->units, at)) continue;
        s.at[x] = (uint8_t)at;
        s.next = (uint8_t)(s.next + (x == from->next));
        for (int i = a->forward; i < a->ops; i++) if (a->op[i].last < s.next) s.at[i] = ADDRESS_NONE;
        address_reach(a, &s, cost + op->seconds);
    }
}

static inline void address_others(addresses *a, const address_state *from, int cost)     /* drops and moves */
{
    for (int x = 0; x < from->next; x++) {
        address_state s = *from;
        if (from->at[x] == ADDRESS_NONE) continue;
        s.at[x] = ADDRESS_NONE;
        if (x < a->forward) address_reach(a, &s, cost);
        for (int at = 0; at + a->op[x].units <= a->slab; at++) {
            if (!address_free(a, from, a->op[x].units, at)) continue;
            s.at[x] = (uint8_t)at;
            address_reach(a, &s, cost + a->op[x].seconds);
        }
    }
}

/* Seconds in a slab of so many bytes; 0: nothing fits; -1: there are too many states. */
static inline int addresses_best(addresses *a, size_t slab)
{
    address_state s;
    a->slab = (int)(slab / ADDRESS_UNIT); a->states = 0;
    if (a->slab >= ADDRESS_NONE) return -1;
    memset(a->table, 0, sizeof a->table); memset(a->bucket, 0, sizeof a->bucket);
    memset(&s, ADDRESS_NONE, sizeof s);
    s.next = 0;
    address_reach(a, &s, 0);
    for (int cost = 0; cost < ADDRESS_SECONDS; cost++)
        while (a->bucket[cost] && a->states < ADDRESS_STATES) {
            const int n = a->bucket[cost] - 1;
            a->bucket[cost] = a->behind[n];
            if (a->cost[n] != cost) continue;
            s = a->state[n];
            if (s.next == a->ops) return cost;
            address_run(a, &s, s.next, cost);
            for (int f = 0; f < a->forward && f < s.next; f++)
                if (a->op[f].letter == 'f' && s.at[f] == ADDRESS_NONE) address_run(a, &s, f, cost);
            address_others(a, &s, cost);
        }
    return a->states < ADDRESS_STATES ? 0 : -1;
}

#endif
