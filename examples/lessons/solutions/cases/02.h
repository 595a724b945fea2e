/* The loss of a layer with exercise_1, or with the right one, on the same input and weights. */
static double loss_with(int right)
{
    static float x[NUMBERS * 4];
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    const gcp_tensor in = gcp_input(net, "x", GCP_SHAPE(NUMBERS, 4)), y = gcp_linear(in, .out = 4),
                     z = right ? gcp_tanh(gcp_linear(y, .out = 3)) : exercise_1(y);
    gcp_plan plan = plan_of(gcp_mean(gcp_mul(z, z)));
    for (int i = 0; i < NUMBERS * 4; i++) x[i] = (float)(i % 23 - 11) / 11;
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, in, x);
    return gcp_step(&plan);
}
static int more_1(void) { return layer_of(7) && lesson_case("The loss with exercise_1", loss_with(0), loss_with(1)); }
static int more_2(void) { return slab_of(3) && slab_of(16); }
