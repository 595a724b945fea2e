/* A language model, unrolled over time: each step reads what the one before it left. */
#ifndef NETWORKS_LSTM_H
#define NETWORKS_LSTM_H

#include <limits.h>
#include "network.h"

/* The weights of a layer, which all steps share. */
typedef struct lstm_weights { gcp_tensor input, state, bias; } lstm_weights;

/* One step of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates). *state, *cell: nil before the first. */
static inline void lstm_step(const lstm_weights *w, gcp_tensor x, gcp_tensor *state, gcp_tensor *cell, int width)
{
    gcp_tensor gates = gcp_linear_op(x, w->input, w->bias), gate[4];
    if (!gcp_is_nil(*state)) gates = gcp_add(gates, gcp_linear_op(*state, w->state, GCP_NIL));
    for (int i = 0; i < 4; i++) {
        gate[i] = gcp_slice(gates, .first = i * width, .count = width);
        gate[i] = i == 3 ? gcp_tanh(gate[i]) : gcp_sigmoid(gate[i]);
    }
    gcp_tensor next = gcp_mul(gate[0], gate[3]);
    if (!gcp_is_nil(*cell)) next = gcp_add(gcp_mul(gate[1], *cell), next);
    *cell = next;
    *state = gcp_mul(gate[2], gcp_tanh(next));
}

/* Guesses the next letter from all before it: an embedding, an LSTM, a dense layer. image: ids of (batch, steps);
   labels: as many, a text's letters one after the other. The tape needs 18 steps + 8 ops. Gruslys et al. 2016
   checkpoint such a chain of steps. */
static inline network lstm(gcp_tape *net, int batch, int steps, int width, int letters)
{
    enum { MOST = 4096, JOIN = GCP_MAX_INPUTS };
    gcp_tensor states[MOST], ids = gcp_ids(net, "ids", GCP_SHAPE(batch, steps)), state = GCP_NIL, cell = GCP_NIL,
               labels = gcp_labels(net, "labels", GCP_SHAPE(steps > 0 && batch > INT_MAX / steps ? -1 : batch * steps));
    const gcp_shape square = GCP_SHAPE(4 * width, width);
    const lstm_weights w = { gcp_param(net, "lstm_input", square, .init = GCP_INIT_GLOROT),
                             gcp_param(net, "lstm_state", square, .init = GCP_INIT_GLOROT),
                             gcp_param(net, "lstm_bias", GCP_SHAPE(4 * width), .init = GCP_INIT_ZEROS) };
    gcp_tensor x = gcp_embedding(ids, .entries = letters, .out = width);
    x = gcp_reshape(x, GCP_SHAPE(batch, steps * width));
    steps = steps < MOST ? steps : MOST;
    for (int t = 0; t < steps; t++)
        GCP_SEGMENT(net, "step") {
            lstm_step(&w, gcp_slice(x, .first = t * width, .count = width), &state, &cell, width);
            states[t] = state;
        }
    int count = steps;
    while (count > 1) {                           /* a concat takes no more than JOIN at once */
        int joined = 0;
        for (int i = 0; i < count; i += JOIN)
            states[joined++] = gcp_concat(states + i, count - i < JOIN ? count - i : JOIN);
        count = joined;
    }
    x = gcp_reshape(states[0], GCP_SHAPE(batch * steps, width));
    return network_of(ids, labels, gcp_linear(x, .out = letters));
}

#endif
