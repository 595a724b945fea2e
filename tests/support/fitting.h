/* fitting.h - a plan's options, less those that its policy or optimiser does not take: for loops over policies. */
#ifndef FITTING_H
#define FITTING_H
#include "gcp.h"

static inline gcp_plan_opts fitting(gcp_plan_opts o)
{
    int adam = o.optimizer == GCP_OPTIMIZER_ADAM || o.optimizer == GCP_OPTIMIZER_ADAMW;
    if (o.policy != GCP_POLICY_UNIFORM) o.segments = o.balance = 0;
    if (o.policy != GCP_POLICY_CHECKPOINTS) o.checkpoints = o.replay = 0;
    if (o.policy != GCP_POLICY_BUDGET) {
        o.effort = GCP_EFFORT_DEFAULT;
        o.far = 0;
        o.far_only = 0;
    }
    if (o.optimizer != GCP_OPTIMIZER_SGD) o.momentum = 0;
    if (!adam) o.beta1 = o.beta2 = o.epsilon = 0;
    if (!o.optimizer) o.weight_decay = o.clip_value = o.clip_norm = 0;
    return o;
}
#endif
