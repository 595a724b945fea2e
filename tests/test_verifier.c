/* The verifier against damaged plans: an operand moved, an instruction left out or doubled, a value overwritten. Each
   is refused; the undamaged plan passes. */
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "support/random_net.h"
#include "support/check.h"

static unsigned char tape_memory[GCP_MB(48)];
static gcp_arena arena;

static int verdict(const gcpi_plan *core)
{
    char message[200];
    return gcpi_verify(&core->p, &core->list, core->placed, core->slab_bytes, message, sizeof message, &arena);
}

static int operand_at(const gcpi_plan *core, int instruction)
{
    int n = 0;
    for (int i = 0; i < instruction; i++) n += core->p.tasks[core->list.at[i].task].count;
    return n;
}

static void moved(gcpi_plan *core, dice *d)
{
    int i = (int)roll(d, (unsigned)core->list.count), n = operand_at(core, i);
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    for (int k = 0; k < t->count; k++) {
        int mode = core->p.operands[t->operands + k].mode;
        if (core->placed[n + k].offset < 0 || (mode != GCPI_READ && mode != GCPI_ADD)) continue;
        core->placed[n + k].offset += 64;
        CHECK(!verdict(core));
        core->placed[n + k].offset -= 64;
    }
}

/* Without its operands' places an instruction cannot simply be cut out: its kind or task is damaged instead. */
static void misplaced(gcpi_plan *core, dice *d)
{
    int i = core->p.forward + (int)roll(d, (unsigned)(core->list.count - core->p.forward));
    gcpi_instruction was = core->list.at[i];
    if (was.letter == 'R') core->list.at[i].letter = 'F'; /* forward a second time */
    else core->list.count = i;                            /* it and all behind it are missing */
    ptrdiff_t count = core->list.count;
    CHECK(!verdict(core));
    core->list.at[i] = was;
    if (count == i) core->list.count = i + 1;
}

/* Lays what an instruction writes over the loss, which must stay to the end. */
static void overwritten(gcpi_plan *core)
{
    ptrdiff_t kept = core->where[core->p.root];
    for (int i = core->p.forward; i < (int)core->list.count; i++) {
        int n = operand_at(core, i);
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        for (int k = 0; k < t->count; k++) {
            ptrdiff_t was = core->placed[n + k].offset;
            if (core->p.operands[t->operands + k].mode != GCPI_WRITE || was < 0) continue;
            core->placed[n + k].offset = kept;
            CHECK(!verdict(core));
            core->placed[n + k].offset = was;
            return;
        }
    }
}

int main(void)
{
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS, GCP_POLICY_SQRT };
    for (unsigned seed = 0; seed < 60; seed++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        random_net r = net_make_with(&arena, seed, 1);
        gcp_plan plan = gcp_plan_make(r.loss, .policy = policies[seed % 3], .optimizer = GCP_OPTIMIZER_SGD);
        CHECK(plan.core && verdict(plan.core));
        ptrdiff_t count = plan.core ? plan.core->list.count : 0;
        for (int trial = 0; plan.core && trial < 20; trial++) {
            moved(plan.core, &r.d);
            misplaced(plan.core, &r.d);
            plan.core->list.count = count;
            overwritten(plan.core);
        }
        CHECK(plan.core && verdict(plan.core));
    }
    return check_done();
}
