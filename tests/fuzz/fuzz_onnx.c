/* ONNX files. What is opened is recorded, or refused with the tape as it was; what is recorded is printed as C,
   planned, loaded, run and saved; what is saved opens again and is recorded alike. */
#include "fuzz.h"
#include "gcp_io.h"
#include "gcp_onnx.h"
#include "../support/memory_files.h"

static unsigned char file_memory[1 << 20], tape_memory[1 << 21], again_memory[2][1 << 20];
static _Alignas(64) unsigned char step_memory[1 << 20];
static memory_disk disk;

static gcp_tape *record(gcp_onnx *model, gcp_arena *tapes, unsigned char *memory, size_t size, int classes)
{
    *tapes = gcp_arena_from(memory, size);
    gcp_tape *net = gcp_tape_make(tapes, .ops = 200, .seed = 1);
    FUZZ_CHECK(net != NULL);
    if (!gcp_onnx_record(net, model, .batch = 2, .sizes = "* 4", .classes = classes)) return net;
    FUZZ_CHECK(gcp_error(net) != NULL);
    gcp_error_clear(net);
    FUZZ_CHECK(gcp_error(net) || gcp_is_nil(gcp_nth_parameter(net, 0)));
    return NULL;
}
/* Another file with the same weights. */
static void saved(gcp_tape *net, gcp_onnx *model, int inference)
{
    gcp_files files = memory_files(&disk);
    gcp_arena bytes = gcp_arena_from(again_memory[0], sizeof *again_memory), tapes;
    if (gcp_onnx_save(net, model, "f", .inference = inference, .files = &files)) {
        gcp_error_clear(net);
        return;
    }
    gcp_onnx again = gcp_onnx_open(&bytes, "f", .files = &files);
    if (strstr(again.error, "bytes, and as a rule") || strstr(again.error, "of the arena beside")) return;
    FUZZ_CHECK(!again.error[0] && again.nodes == model->nodes && again.weights == model->weights);
    record(&again, &tapes, again_memory[1], sizeof *again_memory, 0);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gcp_arena bytes = gcp_arena_from(file_memory, sizeof file_memory), tapes;
    uint8_t *copy = malloc(size + 1);                       /* of its own size, for the sanitizer */
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    gcp_onnx model = gcp_onnx_open(&bytes, "f", .data = copy, .size = size);
    FUZZ_CHECK(!model.core == !!model.error[0] && (model.core || !bytes.used));
    gcp_tape *net = model.core ? record(&model, &tapes, tape_memory, sizeof tape_memory, size % 3 ? 0 : 3) : NULL;
    if (net) {
        gcp_writer nowhere = { NULL, NULL };
        if (gcp_onnx_print_c(net, &model, nowhere)) FUZZ_CHECK(gcp_error_code(net) == GCP_E_NOMEM);
        if (gcp_error(net)) gcp_error_clear(net);
        gcp_plan plan = gcp_plan_make(gcp_onnx_output(&model, 0), .inference = 1);
        if (plan.core && plan.room <= sizeof step_memory && !gcp_bind(&plan, step_memory, sizeof step_memory)) {
            memset(step_memory + plan.state_bytes, 0, plan.room - plan.state_bytes);
            gcp_onnx_load(net, &model);
            if (gcp_error(net)) gcp_error_clear(net);
            saved(net, &model, size % 2);
            gcp_unbind(&plan);
        }
    }
    FUZZ_CHECK(bytes.scratch == 0);
    free(copy);
    return 0;
}
