/* A simulation: time steps of a differential equation, each an op of its own. Its gradient is what Revolve (Griewank
   and Walther 2000) was made for. */
#ifndef NETWORKS_PDE_H
#define NETWORKS_PDE_H

#include <string.h>
#include "network.h"

/* One time step of Burgers' equation on a circle, u' = u - C u (right - left) + d (left - 2 u + right), where C is a
   half of dt / dx and d, a number for each point, the viscosity. in: u (rows of points), d. */
#define BURGERS_C ((gcp_real)0.1)

static inline int burgers_shape(gcp_shape_call *call)
{
    call->out[0] = call->in[0];
    call->out_dtype[0] = call->in_dtype[0];
    return call->in[0].d[3] == call->in[1].d[3];
}
static inline void burgers_forward(const gcp_call *call)
{
    const gcp_view *in = &call->in[0], *out = &call->out[0];
    const gcp_real *d = (const gcp_real *)call->in[1].data;
    const int rows = in->shape.d[0], n = in->shape.d[3];
    for (int r = 0; r < rows; r++) {
        const gcp_real *u = (const gcp_real *)in->data + (ptrdiff_t)r * in->pitch;
        gcp_real *next = (gcp_real *)out->data + (ptrdiff_t)r * out->pitch;
        for (int i = 0; i < n; i++) {
            const gcp_real left = u[i ? i - 1 : n - 1], right = u[i < n - 1 ? i + 1 : 0];
            next[i] = u[i] - BURGERS_C * u[i] * (right - left) + d[i] * (left - 2 * u[i] + right);
        }
    }
}
/* Its adjoint, for one row: g is the gradient of what the step made. */
static inline void burgers_row(const gcp_real *u, const gcp_real *d, const gcp_real *g, gcp_real *du, int add, int n)
{
    for (int i = 0; i < n; i++) {
        const int l = i ? i - 1 : n - 1, r = i < n - 1 ? i + 1 : 0;
        const gcp_real sum = g[i] * (1 - BURGERS_C * (u[r] - u[l]) - 2 * d[i]) + g[l] * (d[l] - BURGERS_C * u[l]) +
                             g[r] * (d[r] + BURGERS_C * u[r]);
        du[i] = sum + (add ? du[i] : 0);
    }
}
static inline void burgers_backward(const gcp_call *call)
{
    const gcp_view *in = &call->in[0], *dout = &call->dout[0], *du = &call->din[0];
    const gcp_real *d = (const gcp_real *)call->in[1].data;
    gcp_real *dd = (gcp_real *)call->din[1].data;
    const int rows = in->shape.d[0], n = in->shape.d[3];
    if (dd && !call->din[1].accumulate) memset(dd, 0, (size_t)n * sizeof *dd);
    for (int r = 0; r < rows; r++) {
        const gcp_real *u = (const gcp_real *)in->data + (ptrdiff_t)r * in->pitch,
                       *g = (const gcp_real *)dout->data + (ptrdiff_t)r * dout->pitch;
        if (du->data) burgers_row(u, d, g, (gcp_real *)du->data + (ptrdiff_t)r * du->pitch, du->accumulate, n);
        for (int i = 0; dd && i < n; i++) dd[i] += g[i] * (u[i ? i - 1 : n - 1] - 2 * u[i] + u[i < n - 1 ? i + 1 : 0]);
    }
}
static inline void burgers_cost(const gcp_cost_call *call, gcp_cost *cost)
{
    cost->flops += (call->backward ? 17.0 : 8.0) * call->in[0].d[0] * call->in[0].d[3];
}

/* The energy at the end of `steps` time steps, for as many starts as the batch has: its gradient by the viscosity says
   where that takes most of it. image: the starts; there are no labels. The tape needs steps + 3 ops. */
static inline network pde(gcp_tape *net, int batch, int points, int steps)
{
    static const gcp_op burgers = { .name = "burgers", .shape = burgers_shape, .forward = burgers_forward,
                                    .backward = burgers_backward, .cost = burgers_cost, .reads_in = 3, .outputs = 1 };
    gcp_tensor u[2] = { gcp_input(net, "start", GCP_SHAPE(batch, points)),
                        gcp_param(net, "viscosity", GCP_SHAPE(points), .init = GCP_INIT_ONES) };
    network n = { u[0], GCP_NIL, GCP_NIL, GCP_NIL };
    u[1] = gcp_scale(u[1], .by = 0.2);            /* the scheme is stable up to 0.5 */
    for (int t = 0; t < steps; t++) GCP_SEGMENT(net, "step") u[0] = gcp_custom(u, 2, &burgers);
    n.logits = u[0];
    n.loss = gcp_mean(gcp_mul(u[0], u[0]));
    return n;
}

#endif
