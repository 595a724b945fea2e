/* finetune_options.h - the command line of finetune.c. */
#ifndef FINETUNE_OPTIONS_H
#define FINETUNE_OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "photos.h"
#include "words.h"

typedef struct options {
    const char *model, *data, *out, *resume, *sizes, *train, *freeze;
    size_t budget;
    gcp_store store;
    int epochs, batch, size, augment, frozen_norms, list;
    double lr, held_out, mean[3], std[3];
} options;

static const char no_model[] =
    "finetune: no model. In Python, once:\n\n"
    "  model = torchvision.models.mobilenet_v3_small(weights=\"DEFAULT\")\n"
    "  torch.onnx.export(model.train(), torch.randn(2, 3, 224, 224), \"model.onnx\", dynamo=False, opset_version=17,\n"
    "                    training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,\n"
    "                    input_names=[\"image\"], dynamic_axes={\"image\": {0: \"batch\"}})\n\n"
    "then: finetune model.onnx --data FOLDER --budget 64MiB        (--help says more)\n";

static int usage(FILE *f, int status)
{
    fputs(
        "finetune MODEL.onnx --data FOLDER - trains a network of a file on photographs, and saves the same file\n\n"
        "  --data FOLDER    a folder for each class, its name the class's, with PPM, PGM or BMP files inside\n"
#ifdef EXAMPLE_STB
        "                   (and JPEG, PNG, GIF, TGA)\n"
#else
        "                   (JPEG and PNG: built without stb_image.h; Debian's package is libstb-dev)\n"
#endif
        "  --budget B       bytes of a step, weights and all: 64MiB, 1.5GiB; the fastest schedule that fits.\n"
        "                   Without it every activation is kept. (MB: 2^20 bytes)\n"
        "  --store S        float (default), or bf16: activations and their gradients in two bytes, not four;\n"
        "                   a run goes on under either\n"
        "  --out FILE       the tuned model (default: tuned.onnx); its classes, a line each, in FILE.classes\n"
        "  --resume FILE    goes on with the run in FILE, if there is one, and saves it there after each epoch and\n"
        "                   when Ctrl-C ends it; the same photographs, classes, --batch and --held-out\n\n"
        "  --list           prints the names of the weights, and ends\n"
        "  --train P        what trains: names of weights, * for any text ('classifier*'); default: all\n"
        "  --freeze P       what does not; batch-norms keep their statistics then\n"
        "  --frozen-norms   they do so in any case: for small batches, with a tenth of the rate\n"
        "  --epochs N (default 5)   --batch N (default 8)   --lr X (default 0.005, to 0 by a cosine)\n"
        "  --held-out X     the share of each class that only tests (default 0.2)\n"
        "  --augment        trains on random squares of the photographs, half of them mirrored\n\n"
        "A photograph becomes the middle 7/8 of its middle square, resized as PIL's BILINEAR does (torchvision's\n"
        "Resize(256), CenterCrop(224)); a camera's note that it lies on its side (EXIF) is not read.\n"
        "  --size N         the image's side, where the file leaves it open (default 224)\n"
        "  --mean R,G,B --std R,G,B   of values from 0 to 1, as the model's card says (default: those of ImageNet,\n"
        "                   0.485,0.456,0.406 and 0.229,0.224,0.225); a grey network takes the first\n"
        "  --sizes TEXT     other sizes that the file leaves open: 'height 160 width 160'\n",
        f);
    return status;
}
static int wrong(const char *name, const char *text, const char *expected)
{
    fprintf(stderr, "finetune: %s: found '%s', expected %s\n", name, text, expected);
    return 0;
}
static int three(const char *text, double low, double *to)
{
    char rest;
    if (sscanf(text, "%lf,%lf,%lf%c", to, to + 1, to + 2, &rest) != 3) return 0;
    for (int i = 0; i < 3; i++) if (!(to[i] >= low && to[i] < 1e6)) return 0;
    return 1;
}
static int option(options *o, const char *name, const char *value)
{
    const struct { const char *name; const char **to; } texts[] = {
        { "--data", &o->data }, { "--out", &o->out }, { "--resume", &o->resume }, { "--sizes", &o->sizes },
        { "--train", &o->train }, { "--freeze", &o->freeze } };
    const struct { const char *name; int *to; } wholes[] = {
        { "--epochs", &o->epochs }, { "--batch", &o->batch }, { "--size", &o->size } };
    if (!value) return wrong(name, "nothing", "a value (--help)");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name)) return (*texts[i].to = value) != NULL;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        if (!strcmp(name, wholes[i].name))
            return whole_of(value, 1, 100000, wholes[i].to) || wrong(name, value, "a whole number from 1 to 100000");
    if (!strcmp(name, "--lr")) return number_of(value, 1e-9, 1e3, &o->lr) || wrong(name, value, "a number above 0");
    if (!strcmp(name, "--held-out"))
        return number_of(value, 0, 0.9, &o->held_out) || wrong(name, value, "a number from 0 to 0.9");
    if (!strcmp(name, "--budget")) return (o->budget = bytes_of(value)) > 0 || wrong(name, value, "bytes, as 64MiB");
    if (!strcmp(name, "--store")) return store_of(value, &o->store) || wrong(name, value, "float or bf16");
    if (!strcmp(name, "--mean")) return three(value, -1e6, o->mean) || wrong(name, value, "three numbers: 0.5,0.5,0.5");
    if (!strcmp(name, "--std"))
        return three(value, 1e-6, o->std) || wrong(name, value, "three numbers above 0: 0.5,0.5,0.5");
    return wrong("an option", name, "one of --help's");
}
/* 0: something is wrong, which was said. */
static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--augment")) o->augment = 1;
        else if (!strcmp(argv[i], "--list")) o->list = 1;
        else if (!strcmp(argv[i], "--frozen-norms")) o->frozen_norms = 1;
        else if (strncmp(argv[i], "--", 2)) {
            if (o->model) return wrong("MODEL.onnx", argv[i], "one model");
            o->model = argv[i];
        } else if (option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) i++;
        else return 0;
    }
    if (o->resume && !strcmp(o->resume, o->out)) return wrong("--resume", o->resume, "another file than --out");
    if (!o->model) fputs(no_model, stderr);
    else if (!o->data) wrong("--data", "nothing", "a folder that has one for each class");
    return o->model && o->data;
}
#endif
