/* far_slots.h - optimiser slots that wait in far memory: the bits of slots in the state, in fewer bytes. */
#ifndef FAR_SLOTS_H
#define FAR_SLOTS_H
#include "check.h"
#include "device_dags.h"

/* weights of 72,000 and 150,000 elements: updates in two and three pieces */
enum { WIDE_BATCH = 4, WIDE_IN = 24, WIDE = 3000, WIDE_OUT = 48, WIDE_VALUES = WIDE * (WIDE_IN + WIDE_OUT) };
typedef struct wide_net { gcp_arena arena; gcp_tape *tape; gcp_tensor x, y, loss; } wide_net;
typedef struct wide_outcome { float loss[3]; double hash; size_t bytes, traffic; } wide_outcome;

static inline void wide_record(wide_net *w)
{
    w->arena = gcp_arena_from(device_tape, sizeof device_tape);
    w->tape = gcp_tape_make(&w->arena, .ops = 16, .seed = 3);
    w->x = gcp_input(w->tape, "x", GCP_SHAPE(WIDE_BATCH, WIDE_IN));
    w->y = gcp_input(w->tape, "y", GCP_SHAPE(WIDE_BATCH, WIDE_OUT));
    w->loss = gcp_mse(gcp_linear(gcp_tanh(gcp_linear(w->x, .out = WIDE, .no_bias = 1)), .out = WIDE_OUT), w->y);
}

static inline void wide_step(wide_net *w, gcp_plan *plan, int step, float *loss)
{
    float x[WIDE_BATCH * WIDE_IN], y[WIDE_BATCH * WIDE_OUT];
    for (int i = 0; i < WIDE_BATCH * WIDE_IN; i++) x[i] = (float)((i * 37 + step * 11) % 101) / 50 - 1;
    for (int i = 0; i < WIDE_BATCH * WIDE_OUT; i++) y[i] = (float)((i * 13 + step * 7) % 31) / 15 - 1;
    gcp_write(plan, w->x, x);
    gcp_write(plan, w->y, y);
    *loss = (float)gcp_step(plan, .lr = 0.01);
}

/* Three steps. slots: where they wait, NULL: in the state. */
static inline wide_outcome wide_train(gcp_plan_opts o, void *slots)
{
    wide_net w;
    wide_outcome out = { .hash = 0 };
    device_outcome values = { .values = 0 };
    wide_record(&w);
    if (slots) CHECK(gcp_slots_bind(w.tape, slots, 63 + gcp_slots_bytes(w.tape, o.optimizer)) == GCP_OK);
    gcp_plan plan = gcp_plan_make_at(w.loss, o);
    CHECK(plan.core && gcp_bind(&plan, NULL, 0) == GCP_OK && (plan.split.optimizer == 0) == (slots != NULL));
    for (int step = 0; step < 3; step++) wide_step(&w, &plan, step, &out.loss[step]);
    size_t measured = gcp_measure(&plan, NULL, 0);
    CHECK_INT(measured, ==, plan.bytes);
    device_hash(&plan, &values, 0);
    out.hash = values.hash; out.bytes = plan.bytes; out.traffic = plan.far_traffic;
    const char *error = gcp_error(w.tape);
    if (error) fprintf(stderr, "%s\n", error);
    CHECK(error == NULL);
    gcp_unbind(&plan);
    return out;
}

/* slots: gcp_slots_bytes of Adam that the target's copies reach */
static inline void far_slots(const gcp_target *target, void *slots)
{
    for (int way = 0; way < 6; way++) {
        gcp_plan_opts o = GCP_OPTS(gcp_plan_opts, .target = target, .fuse_update = way % 2);
        o.optimizer = way < 2 ? GCP_OPTIMIZER_SGD : way < 4 ? GCP_OPTIMIZER_ADAM : GCP_OPTIMIZER_ADAMW;
        if (way < 2) o.momentum = 0.9;
        if (way == 4) o.accumulate = 3;
        wide_outcome near = wide_train(o, NULL), far = wide_train(o, slots);
        const size_t each = sizeof(float) * WIDE_VALUES * (way < 2 ? 1 : 2);
        CHECK(near.hash == far.hash && !memcmp(near.loss, far.loss, sizeof near.loss));
        CHECK(near.traffic == 0 && far.traffic >= 2 * each && far.traffic < 2 * each + 4096);
        CHECK(far.bytes < near.bytes && far.bytes + each - (way < 2 ? 1 : 2) * sizeof(float) * 2 * 65536 <= near.bytes);
    }
}
#endif
