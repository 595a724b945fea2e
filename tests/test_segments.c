/* GCP_SEGMENT: nesting, numbering, misuse. */
#include "support/check.h"
#include "gcp.h"

static unsigned char memory[1 << 20];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(memory, sizeof memory);
    return gcp_tape_make(&arena, .ops = 64);
}

static void returns(gcp_tape *net, gcp_tensor x)
{
    GCP_SEGMENT(net, "left") {
        gcp_relu(x);
        if (gcp_elements(x)) return;
    }
}

static void numbering(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    char name[64];
    GCP_SEGMENT(net, "stage")
        for (int i = 0; i < 3; i++)
            GCP_SEGMENT(net, "block") {
                x = gcp_linear(x, .out = 4);
                x = gcp_relu(x);
            }
    CHECK_TEXT(gcp_name(x, name, sizeof name), "stage[0]/block[2]/relu[0]");
    CHECK(!gcp_is_nil(gcp_find(net, "stage[0]/block[1]/linear[0]/weight")));
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

static void misuse(void)
{
    char want[160];
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    int line = __LINE__ + 1;
    GCP_SEGMENT(net, "out") {
        gcp_relu(x);
        break;
    }
    snprintf(want, sizeof want, "test_segments.c:%d: segment 'out[0]': a break left its block", line);
    CHECK_TEXT(gcp_error(net), want);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    line = __LINE__ + 1;
    GCP_SEGMENT(net, "empty") { }
    snprintf(want, sizeof want, "test_segments.c:%d: segment 'empty[0]': its block recorded no op", line);
    CHECK_TEXT(gcp_error(net), want);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    returns(net, x);
    gcp_tensor loss = gcp_mean(x);
    gcp_plan_make(loss);
    CHECK(strstr(gcp_error(net), "segment 'left[0]': a return or goto left its block") != NULL);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    GCP_SEGMENT(net, "fine") {
        x = gcp_relu(x);
        if (gcp_elements(x)) continue;
        x = gcp_relu(x);
    }
    CHECK(gcp_error(net) == NULL);
}

int main(void)
{
    numbering();
    misuse();
    return check_done();
}
