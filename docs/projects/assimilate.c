/*
 * Data assimilation (4D-Var): find the initial state of a simulation from what was observed at its end. The gradient
 * goes backward through every time step (the adjoint method); gcp keeps as many states as fit in the bytes it is given.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <lbfgs.h>
#include "gcp.h"

#define N       16384                           /* points on a circle */
#define STEPS   400                             /* of time */

static const double C = 0.10, D = 0.24;         /* dt / 2 dx, viscosity dt / dx^2 */

/* One time step of Burgers' equation, u' = u - C u (u_right - u_left) + D (u_right - 2 u + u_left). */
static void step_forward(const gcp_call *call)
{
    const gcp_real *u = call->in[0].data;
    gcp_real *v = call->out[0].data;
    int i;

    for (i = 0;i < N;++i) {
        double left = u[i ? i - 1 : N - 1], right = u[i < N - 1 ? i + 1 : 0];
        v[i] = u[i] - C * u[i] * (right - left) + D * (right - 2 * u[i] + left);
    }
}

/* Its adjoint. It reads the input, u. */
static void step_backward(const gcp_call *call)
{
    const gcp_real *u = call->in[0].data, *g = call->dout[0].data;
    gcp_real *d = call->din[0].data;
    int i;

    for (i = 0;i < N;++i) {
        int l = i ? i - 1 : N - 1, r = i < N - 1 ? i + 1 : 0;
        double sum = g[i] * (1 - C * (u[r] - u[l]) - 2 * D) + g[l] * (D - C * u[l]) + g[r] * (D + C * u[r]);
        d[i] = sum + (call->din[0].accumulate ? d[i] : 0);
    }
}

static int step_shape(gcp_shape_call *call)
{
    call->out[0] = call->in[0];
    call->out_dtype[0] = call->in_dtype[0];
    return 1;
}

static void step_cost(const gcp_cost_call *call, gcp_cost *cost)
{
    cost->flops += call->backward ? 13.0 * N : 7.0 * N;
}

static const gcp_op step_op = {
    .name = "burgers", .shape = step_shape, .forward = step_forward, .backward = step_backward, .cost = step_cost,
    .reads_in = 1, .outputs = 1
};

typedef struct {
    gcp_plan plan;
    gcp_tensor start, end, seen;
} model_t;

/* What L-BFGS asks for: the misfit of x, and its gradient. */
static lbfgsfloatval_t evaluate(
    void *instance,
    const lbfgsfloatval_t *x,
    lbfgsfloatval_t *g,
    const int n,
    const lbfgsfloatval_t step
    )
{
    model_t *model = instance;
    lbfgsfloatval_t fx;

    gcp_write(&model->plan, model->start, x);
    fx = gcp_step(&model->plan);
    gcp_grad(&model->plan, model->start, g);
    return fx;
}

static int progress(
    void *instance,
    const lbfgsfloatval_t *x,
    const lbfgsfloatval_t *g,
    const lbfgsfloatval_t fx,
    const lbfgsfloatval_t xnorm,
    const lbfgsfloatval_t gnorm,
    const lbfgsfloatval_t step,
    int n,
    int k,
    int ls
    )
{
    if (k % 10 == 0) printf("%3d: misfit %.17g, gradient %.3e\n", k, fx, gnorm);
    return 0;
}

static double truth(int i)
{
    return 0.5 + 0.4 * sin(2 * 3.14159265358979 * i / N) + (i > N / 3 && i < N / 2 ? 0.3 : 0);
}

/* Record the simulation and the misfit of its end. */
static gcp_tensor record(gcp_tape *tape, model_t *model)
{
    gcp_tensor u = model->start = gcp_want_grad(gcp_input(tape, "start", GCP_SHAPE(1, N)));
    int i;

    model->seen = gcp_input(tape, "seen", GCP_SHAPE(1, N));
    for (i = 0;i < STEPS;++i) u = gcp_custom(&u, 1, &step_op);
    model->end = u;
    return gcp_scale(gcp_mse(u, model->seen), .by = N);
}

/* Plan the gradient in as many bytes as were given, and the simulation by itself in the same memory. */
static void *plan(gcp_tape *tape, model_t *model, gcp_plan *look, size_t budget)
{
    size_t room;
    void *memory;

    model->plan = gcp_plan_make(record(tape, model), .policy = GCP_POLICY_BUDGET, .budget = budget);
    *look = gcp_plan_make(model->end, .inference = 1);
    room = gcp_plans_room(&model->plan, look);
    memory = malloc(room);
    gcp_bind(&model->plan, memory, room);
    gcp_bind(look, memory, room);
    return memory;
}

/* Observe: run the truth to its end. */
static void observe(model_t *model, gcp_plan *look, lbfgsfloatval_t *x)
{
    int i;

    for (i = 0;i < N;++i) x[i] = truth(i);
    gcp_write(look, model->start, x);
    gcp_forward(look);
    gcp_read(look, model->end, x);
    gcp_write(&model->plan, model->seen, x);
}

int main(int argc, char *argv[])
{
    double megabytes = argc > 1 ? atof(argv[1]) : 0;
    size_t budget = argc > 1 ? (size_t)(megabytes * 1000000) : SIZE_MAX;
    static unsigned char tape_memory[GCP_MB(64)];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof(tape_memory));
    gcp_tape *tape = gcp_tape_make(&arena, .ops = STEPS + 8);
    model_t model;
    lbfgsfloatval_t fx, error = 0, *x = lbfgs_malloc(N);
    lbfgs_parameter_t param;
    gcp_plan look;
    void *memory;
    int i, ret;

    if (argc > 1 && !(megabytes > 0 && megabytes < 1e6)) {
        printf("usage: %s [megabytes]\n", argv[0]);
        return 1;
    }

    memory = plan(tape, &model, &look, budget);
    observe(&model, &look, x);
    if (gcp_error(tape)) {
        printf("%s\n", gcp_error(tape));
        return 1;
    }
    printf("%zu bytes, %d of %d time steps run again, %.2f times the time of keeping all\n", model.plan.bytes,
           model.plan.reruns, STEPS, model.plan.seconds / model.plan.keep_all_seconds);

    /* Start from the observation itself; look for the state that it came from. */
    lbfgs_parameter_init(&param);
    param.max_iterations = 60;
    ret = lbfgs(N, x, &fx, evaluate, progress, &model, &param);
    for (i = 0;i < N;++i) error = fmax(error, fabs(x[i] - truth(i)));
    printf("L-BFGS ended with status %d: misfit %.17g, start off by at most %.4f\n", ret, fx, error);

    free(memory);
    lbfgs_free(x);
    return 0;
}
