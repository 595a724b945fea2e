/* GCP_POLICY_BUDGET: binomial checkpoints (Griewank 1992). They are for chains of more ops than the dynamic programme
   has stages. With s checkpoints and no op run more than t times again, C(s + t, s) ops can be reversed. They are cut
   into pieces; the last is reversed first, and each frees a checkpoint for those before it, whose ops may run t - 1
   times. */

enum { GCPI_BINOMIAL_DEEP = 24 };                      /* more runs again of an op do not pay */

static double gcpi_binomial(int s, int t)              /* C(s + t, s), 1e9 where it is more */
{
    double c = 1;
    for (int i = 1; i <= t && c < 1e9; i++) c = c * (s + i) / i;
    return GCPI_MIN(c, 1e9);
}

/* How long the first piece of n ops is, with s checkpoints. Between the bounds on both parts there is always one. */
static int gcpi_binomial_piece(int n, int s, int t)
{
    while (t > 1 && gcpi_binomial(s, t - 1) >= n) t--;
    if (s == 0 || t <= 1) return s == 0 ? n : 1;
    return (int)GCPI_MAX(1, GCPI_MIN(gcpi_binomial(s, t - 1), n - gcpi_binomial(s - 1, t - 1)));
}

static void gcpi_binomial_cut(gcpi_planner *q, int first, int last, int segment, int s, int t)
{
    for (int f = first; f < last; f++) q->now.segment[f] = segment;
    if (s == 0 || t == 0 || last - first <= 1) return;
    for (int begin = first; begin < last; s--) {
        const int end = gcpi_cheap_cut(q, begin, begin + gcpi_binomial_piece(last - begin, s, t), last),
                  part = gcpi_segment_add(&q->now, segment);
        gcpi_binomial_cut(q, begin, end, part, s, t - 1);
        begin = end;
    }
}

/* 1: the trial is the order with s checkpoints, and its bytes fit. */
static int gcpi_binomial_order(gcpi_planner *q, int s)
{
    const int n = q->p->forward;
    int t = 1;
    while (gcpi_binomial(s, t) < n) if (++t > GCPI_BINOMIAL_DEEP) return 0;
    gcpi_choice_clear(q);
    gcpi_binomial_cut(q, 0, n, 0, s, t);
    return gcpi_order_of(q, &q->now, &q->trial) && q->trial.valid && q->trial.peak <= gcpi_room(q);
}

/* As many checkpoints as fit, by bisection. */
static void gcpi_binomial_try(gcpi_planner *q)
{
    int fits = 0, over = q->p->forward;
    if (q->p->forward <= GCPI_MOST_STAGES) return;
    while (over - fits > 1) {
        const int middle = fits + (over - fits) / 2;
        *(gcpi_binomial_order(q, middle) ? &fits : &over) = middle;
    }
    for (int s = fits; s > 0 && s > fits - 3; s--)
        if (gcpi_binomial_order(q, s) && gcpi_offer(q, &q->trial) <= q->r->limit) return;
}

/* Two levels, of pieces of a length: the states between these go to far memory, and each is reversed by binomial
   checkpoints, as few as take less. (Aupy, Herrmann, Hovland, Robert 2016 have the optimum for steps and a disk.) */
static void gcpi_binomial_copies(gcpi_planner *q)
{
    enum { STATES = 8 };
    const int n = q->p->forward;
    for (int length = 2; length <= n / 2; length += length / 4 + 1)
        for (int s = 0, t = 1; s <= STATES && s < length; s += s / 2 + 1, t = 1) {
            while (s && gcpi_binomial(s, t) < length && t < GCPI_BINOMIAL_DEEP) t++;
            gcpi_choice_clear(q);
            for (int begin = 0; begin < n; begin += length) {
                const int end = GCPI_MIN(begin + length, n);
                gcpi_binomial_cut(q, begin, end, gcpi_segment_add(&q->now, 0), s, t);
            }
            if (gcpi_order_of(q, &q->now, &q->trial) && q->trial.valid &&
                gcpi_far_relieve(q, &q->trial, gcpi_room(q)))
                gcpi_offer_copies(q, &q->trial);
        }
}
