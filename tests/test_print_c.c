/* What gcp_print_c printed when the tests were built, compiled: it records the same, byte for byte in gcp_graph_print;
   parameters begin with the same values; a file's weights go over by gcp_save and gcp_load. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support/check.h"
#include "support/printed.h"

gcp_tensor record_odd(gcp_tape *net), record_everything(gcp_tape *net), record_resnet50(gcp_tape *net),
    record_mobilenet(gcp_tape *net), record_vit(gcp_tape *net), record_small(gcp_tape *net),
    record_pieces(gcp_tape *net);
static gcp_tensor (*const printed[])(gcp_tape *net) = { record_odd,       record_everything, record_resnet50,
                                                        record_mobilenet, record_vit,        record_small,
                                                        record_pieces };

static unsigned char file_memory[1 << 20];

/* A tape, a plan of it, and its memory. */
typedef struct side {
    gcp_arena arena;
    gcp_tape *net;
    gcp_plan plan;
    char *graph;
    void *step;
} side;

static char *graph_of(const gcp_plan *plan)
{
    static char text[1 << 20];
    FILE *f = tmpfile();
    CHECK(f != NULL);
    if (!f) return NULL;
    gcp_graph_print(plan, gcp_file(f));
    rewind(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    char *copy = malloc(n + 1);
    return copy ? memcpy(copy, text, n + 1) : NULL;
}
static void plan_of(side *s, gcp_tensor loss)
{
    s->plan = gcp_plan_make(gcp_elements(loss) > 1 ? gcp_mean(loss) : loss, .policy = GCP_POLICY_SEGMENTS,
                            .optimizer = GCP_OPTIMIZER_SGD);
    CHECK_TEXT(gcp_error(s->net) ? gcp_error(s->net) : "", "");
    s->graph = graph_of(&s->plan);
    s->step = malloc(s->plan.room);
    CHECK(s->step != NULL);
    gcp_bind(&s->plan, s->step, s->plan.room);
}
static void begin(side *s, int ops)
{
    const size_t size = (size_t)1 << 25;
    s->arena = gcp_arena_from(malloc(size), size);
    s->net = gcp_tape_make(&s->arena, .ops = ops, .seed = 7);
}
static void same_values(const side *a, const side *b)
{
    gcp_tensor x, y;
    char name[256], other[256];
    for (int i = 0; x = gcp_nth_parameter(a->net, i), y = gcp_nth_parameter(b->net, i), !gcp_is_nil(x); i++) {
        const size_t count = gcp_elements(x);
        gcp_real *v = malloc(2 * count * sizeof *v);
        CHECK_TEXT(gcp_name(x, name, sizeof name), gcp_name(y, other, sizeof other));
        CHECK_INT(gcp_elements(y), ==, count);
        if (!v || gcp_elements(y) != count) break;
        gcp_read((gcp_plan *)(uintptr_t)&a->plan, x, v);
        gcp_read((gcp_plan *)(uintptr_t)&b->plan, y, v + count);
        CHECK(!memcmp(v, v + count, count * sizeof *v));
        free(v);
    }
    CHECK(gcp_is_nil(y));
}
int main(void)
{
    for (int i = 0; i < PRINTED_NETWORKS; i++) {
        const printed_network *p = &printed_networks[i];
        gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory);
        side a, b;
        begin(&a, 512);
        begin(&b, 512);
        gcp_onnx model;
        if (p->onnx) model = printed_open(&files, a.net, p->onnx);
        plan_of(&a, p->onnx ? gcp_onnx_output(&model, 0) : p->record(a.net));
        plan_of(&b, printed[i](b.net));
        CHECK(a.graph && b.graph && !strcmp(a.graph, b.graph));
        same_values(&a, &b);
        if (p->onnx) {
            CHECK_INT(gcp_onnx_load(a.net, &model), >, 0);
            CHECK_INT(gcp_save(a.net, "printed.safetensors"), ==, GCP_OK);
            CHECK_INT(gcp_load(b.net, "printed.safetensors"), >, 0);
            same_values(&a, &b);
        }
        CHECK_TEXT(gcp_error(b.net) ? gcp_error(b.net) : "", "");
        free(a.graph), free(b.graph), free(a.step), free(b.step), free(a.arena.base), free(b.arena.base);
    }
    return check_done();
}
