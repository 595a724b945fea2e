/* The verifier against damaged plans: an operand moved, an instruction left out or doubled, a value overwritten. Each
   is refused; the undamaged plan passes. */
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "support/random_net.h"
#include "support/check.h"

static unsigned char tape_memory[GCP_MB(48)];
static gcp_arena arena;

static int verdict(const gcpi_plan *in)
{
    char message[200];
    return gcpi_verify(&in->p, &in->list, in->placed, in->slab_bytes, message, sizeof message, &arena);
}

static int operand_at(const gcpi_plan *in, int instruction)
{
    int n = 0;
    for (int i = 0; i < instruction; i++) n += in->p.tasks[in->list.at[i].task].count;
    return n;
}

static void moved(gcpi_plan *in, dice *d)
{
    int i = (int)roll(d, (unsigned)in->list.count), n = operand_at(in, i);
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
    for (int k = 0; k < t->count; k++) {
        int mode = in->p.operands[t->operands + k].mode;
        if (in->placed[n + k].offset < 0 || (mode != GCPI_READ && mode != GCPI_ADD)) continue;
        in->placed[n + k].offset += 64;
        CHECK(!verdict(in));
        in->placed[n + k].offset -= 64;
    }
}

/* Without its operands' places an instruction cannot simply be cut out: its kind or task is damaged instead. */
static void misplaced(gcpi_plan *in, dice *d)
{
    int i = in->p.forward + (int)roll(d, (unsigned)(in->list.count - in->p.forward));
    gcpi_instruction was = in->list.at[i];
    if (was.letter == 'R') in->list.at[i].letter = 'F'; /* forward a second time */
    else in->list.count = i;                            /* it and all behind it are missing */
    ptrdiff_t count = in->list.count;
    CHECK(!verdict(in));
    in->list.at[i] = was;
    if (count == i) in->list.count = i + 1;
}

/* Lays what an instruction writes over the loss, which must stay to the end. */
static void overwritten(gcpi_plan *in)
{
    ptrdiff_t kept = in->where[in->p.root];
    for (int i = in->p.forward; i < (int)in->list.count; i++) {
        int n = operand_at(in, i);
        const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
        for (int k = 0; k < t->count; k++) {
            ptrdiff_t was = in->placed[n + k].offset;
            if (in->p.operands[t->operands + k].mode != GCPI_WRITE || was < 0) continue;
            in->placed[n + k].offset = kept;
            CHECK(!verdict(in));
            in->placed[n + k].offset = was;
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
        CHECK(plan.in && verdict(plan.in));
        ptrdiff_t count = plan.in ? plan.in->list.count : 0;
        for (int trial = 0; plan.in && trial < 20; trial++) {
            moved(plan.in, &r.d);
            misplaced(plan.in, &r.d);
            plan.in->list.count = count;
            overwritten(plan.in);
        }
        CHECK(plan.in && verdict(plan.in));
    }
    return check_done();
}
