static int more_1(void) { return 1; }

/* The loss of two halves of a block, by exercise_2 or by the right one, on the same input and weights. */
static double loss_with(int right)
{
    static float x[100 * WIDTH];
    static unsigned char memory[GCP_MB(4)];
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 256);
    gcp_tensor in = gcp_input(net, "words", GCP_SHAPE(1, 100, WIDTH)), y = gcp_linear(in, .out = WIDTH);
    for (int i = 0; i < 2; i++)
        y = right ? gcp_add(y, gcp_linear(gcp_gelu(gcp_linear(gcp_layer_norm(y), .out = 4 * WIDTH)), .out = WIDTH))
                  : exercise_2(y);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = GCP_POLICY_SEGMENTS, .target = &one);
    for (int i = 0; i < 100 * WIDTH; i++) x[i] = (float)(i % 23 - 11) / 11;
    gcp_bind(&plan, memory, sizeof memory);
    gcp_write(&plan, in, x);
    const double loss = gcp_step(&plan);
    if (gcp_error(net)) printf("%s\n", gcp_error(net));
    return loss;
}
static int more_2(void)
{
    return dense_blocks(100, 4) && lesson_case("The loss with exercise_2", loss_with(0), loss_with(1));
}
