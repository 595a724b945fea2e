static gcp_tensor exercise_2(gcp_tensor x)
{
    GCP_SEGMENT(x.tape, "dense")
        x = gcp_add(x, gcp_linear(gcp_gelu(gcp_linear(gcp_layer_norm(x), .out = 4 * WIDTH)), .out = WIDTH));
    return x;
}
