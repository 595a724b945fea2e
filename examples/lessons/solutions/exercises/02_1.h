/* tanh's output waits for tanh, and the layer's input (4 floats a row) for the layer. */
static gcp_tensor exercise_1(gcp_tensor x) { return gcp_tanh(gcp_linear(x, .out = 3)); }
