/* strategies.h - what the published systems choose between, as options of a plan: keep all; run again alone (sqrt,
   cheap, budget); copy to far memory alone (far); either. */
#ifndef STRATEGIES_H
#define STRATEGIES_H
#include "gcp.h"

/* segments: of GCP_POLICY_UNIFORM; checkpoints, replay: of GCP_POLICY_CHECKPOINTS */
typedef enum strategy_far { FAR_NEVER, FAR_ALONE, FAR_TOO } strategy_far;
typedef struct strategy {
    const char *name;
    gcp_policy policy;
    strategy_far far;
    int segments, checkpoints, replay;
} strategy;

enum { KEEP_ALL, SQRT, CHEAP, BUDGET, FAR, EITHER, STRATEGIES };
static const strategy strategies[STRATEGIES] = {
    { "keep_all", GCP_POLICY_KEEP_ALL, FAR_NEVER, 0, 0, 0 }, { "sqrt", GCP_POLICY_SQRT, FAR_NEVER, 0, 0, 0 },
    { "cheap", GCP_POLICY_CHEAP, FAR_NEVER, 0, 0, 0 },       { "budget", GCP_POLICY_BUDGET, FAR_NEVER, 0, 0, 0 },
    { "far", GCP_POLICY_BUDGET, FAR_ALONE, 0, 0, 0 },        { "either", GCP_POLICY_BUDGET, FAR_TOO, 0, 0, 0 },
};

/* base: optimiser, target, arena, costs. budget counts for GCP_POLICY_BUDGET. */
static inline gcp_plan_opts strategy_opts(const strategy *s, gcp_plan_opts base, size_t budget)
{
    base.policy = s->policy;
    base.segments = s->segments;
    base.checkpoints = s->checkpoints;
    base.replay = s->replay;
    if (s->policy != GCP_POLICY_BUDGET) return base;
    base.budget = budget;
    base.far = s->far == FAR_NEVER ? 0 : SIZE_MAX / 4;
    base.far_only = s->far == FAR_ALONE;
    return base;
}

/* The plan; where the budget is too small for the strategy, that of the least it works with. The tape's error is
   cleared then. */
static inline gcp_plan strategy_plan(const strategy *s, gcp_tensor loss, gcp_plan_opts base, size_t budget)
{
    gcp_plan plan = gcp_plan_make_at(loss, strategy_opts(s, base, budget));
    if (gcp_plan_ok(&plan) || !plan.least_bytes) return plan;
    gcp_error_clear(loss.tape);
    return gcp_plan_make_at(loss, strategy_opts(s, base, plan.least_bytes));
}
#endif
