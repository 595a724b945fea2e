/* kept[s]: what went into segment s. The end of the last segment is not kept: its second run makes it again. */
static double exercise_3(int layers, int k)
{
    static float gradient[NUMBERS];
    float *kept[LAYERS] = { input }, *made[LAYERS + 1], *x = input;
    const int segments = (layers + k - 1) / k;
    for (int i = 0; i < (segments - 1) * k; i++) {
        float *y = take();
        layer_forward(i, x, y);
        if (i % k) give(x);
        if ((i + 1) % k == 0) kept[(i + 1) / k] = y;
        x = y;
    }
    double loss = 0;
    for (int s = segments - 1; s >= 0; s--) {
        const int first = s * k, end = first + k < layers ? first + k : layers;
        made[first] = kept[s];
        for (int i = first; i < end; i++) {
            made[i + 1] = take();
            layer_forward(i, made[i], made[i + 1]);
        }
        if (s == segments - 1) loss = loss_of(made[end], gradient);
        for (int i = end - 1; i >= first; i--) {
            layer_backward(i, made[i], made[i + 1], gradient);
            give(made[i + 1]);
        }
        if (s) give(kept[s]);
    }
    return loss;
}
