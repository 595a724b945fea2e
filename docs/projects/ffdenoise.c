/* See LICENSE file for copyright and license details. */
#include <arpa/inet.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arg.h"
#include "gcp.h"
#include "util.h"

/* Zero-Shot Noise2Noise (Mansour and Heckel 2023): a small network learns from this one image alone */
#define CHANNELS 32
#define DEPTH    4

struct weights {
	gcp_tensor kernel[DEPTH + 1], bias[DEPTH + 1], pick[2];
};

static float *pixels, *half[2];
static uint16_t *image;

static struct weights
weights(gcp_tape *net)
{
	struct weights w;
	char kernel[16], bias[16];
	int i, out;

	for (i = 0; i <= DEPTH; i++) {
		snprintf(kernel, sizeof(kernel), "kernel%d", i);
		snprintf(bias, sizeof(bias), "bias%d", i);
		out = i < DEPTH ? CHANNELS : 3;
		w.kernel[i] = gcp_param(net, kernel, GCP_SHAPE(out, 3, 3, i ? CHANNELS : 3),
		                        .init = i < DEPTH ? GCP_INIT_HE : GCP_INIT_ZEROS);
		w.bias[i] = gcp_param(net, bias, GCP_SHAPE(out));
	}
	w.pick[0] = gcp_freeze(gcp_param(net, "pick0", GCP_SHAPE(3, 2, 2, 1)));
	w.pick[1] = gcp_freeze(gcp_param(net, "pick1", GCP_SHAPE(3, 2, 2, 1)));
	return w;
}

/* the network gives what has to be added to an image so that it has no noise */
static gcp_tensor
denoised(struct weights *w, gcp_tensor x)
{
	gcp_tensor y = x;
	int i;

	for (i = 0; i < DEPTH; i++)
		y = gcp_leaky_relu(gcp_conv2d_op(y, w->kernel[i], w->bias[i], .pad = 1), .slope = 0.2);
	return gcp_add(x, gcp_conv2d_op(y, w->kernel[i], w->bias[i], .pad = 1));
}

/* each half of the image predicts the other one, and the denoised image agrees with its denoised halves */
static gcp_tensor
record(gcp_tape *net, uint32_t width, uint32_t height, gcp_tensor in[3], gcp_tensor *out)
{
	struct weights w = weights(net);
	gcp_tensor clean[2], loss, d;
	int i;

	in[0] = gcp_input(net, "half0", GCP_SHAPE(1, height / 2, width / 2, 3));
	in[1] = gcp_input(net, "half1", GCP_SHAPE(1, height / 2, width / 2, 3));
	in[2] = gcp_input(net, "image", GCP_SHAPE(1, height, width, 3));
	*out = denoised(&w, in[2]);
	for (i = 0; i < 2; i++)
		clean[i] = denoised(&w, in[i]);
	loss = gcp_add(gcp_mse(clean[0], in[1]), gcp_mse(clean[1], in[0]));
	for (i = 0; i < 2; i++) {
		d = gcp_conv2d_op(*out, w.pick[i], GCP_NIL, .stride = 2, .groups = 3);
		loss = gcp_add(loss, gcp_mse(clean[i], d));
	}
	return loss;
}

static void
read_sizes(uint32_t *width, uint32_t *height)
{
	ff_read_header(width, height);
	if (*width % 2 || *height % 2 || *width > 1 << 15 || *height > 1 << 15)
		die("width and height must be even, and at most 32768");
}

static void
load(uint32_t width, uint32_t height)
{
	size_t i, j, k, l, row = (size_t)width * 3, len = row * height;
	float *p, v[2];

	image = ereallocarray(NULL, (size_t)width * height, 4 * sizeof(uint16_t));
	pixels = ereallocarray(NULL, len, sizeof(float));
	half[0] = ereallocarray(NULL, len / 4, sizeof(float));
	half[1] = ereallocarray(NULL, len / 4, sizeof(float));
	efread(image, sizeof(uint16_t), (size_t)width * height * 4, stdin);
	for (i = 0; i < len; i++)
		pixels[i] = ntohs(image[i / 3 * 4 + i % 3]) / 65535.0f;
	for (i = 0, l = 0; i < height; i += 2)
		for (j = 0; j < width; j += 2)
			for (k = 0; k < 3; k++, l++) {
				p = pixels + i * row + j * 3 + k;
				v[0] = (p[0] + p[row + 3]) / 2;
				v[1] = (p[3] + p[row]) / 2;
				half[0][l] = v[0];
				half[1][l] = v[1];
			}
}

static void
save(uint32_t width, uint32_t height)
{
	size_t i, len = (size_t)width * height * 3;
	float v;

	for (i = 0; i < len; i++) {
		v = pixels[i] < 0 ? 0 : pixels[i] > 1 ? 1 : pixels[i];
		image[i / 3 * 4 + i % 3] = htons((uint16_t)(v * 65535.0f + 0.5f));
	}
	ff_write_header(width, height);
	efwrite(image, sizeof(uint16_t), (size_t)width * height * 4, stdout);
}

static void
usage(void)
{
	die("usage: %s [-m megabytes] [-n steps] [-v]", argv0);
}

/* plans training within the budget, and a pass for the result, both in the memory of one */
static void
prepare(gcp_tensor loss, gcp_tensor out, size_t budget, int verbose, gcp_plan *train, gcp_plan *eval)
{
	static const float pick[2][12] = {
		{ .5, 0, 0, .5, .5, 0, 0, .5, .5, 0, 0, .5 },
		{ 0, .5, .5, 0, 0, .5, .5, 0, 0, .5, .5, 0 },
	};
	size_t room;
	void *memory;

	*train = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = budget,
	                       .optimizer = GCP_OPTIMIZER_ADAM);
	*eval = gcp_plan_make(out, .inference = 1);
	if (gcp_error(loss.tape))
		die("%s", gcp_error(loss.tape));
	if (verbose)
		gcp_why_print(train, gcp_file(stderr));
	room = gcp_plans_room(train, eval);
	memory = ereallocarray(NULL, room, 1);
	gcp_bind(train, memory, room);
	gcp_bind(eval, memory, room);
	gcp_write(train, gcp_find(loss.tape, "pick0"), pick[0]);
	gcp_write(train, gcp_find(loss.tape, "pick1"), pick[1]);
}

/* train on the noisy image, then run it through */
static void
denoise(gcp_plan *train, gcp_plan *eval, gcp_tensor *in, gcp_tensor out, int steps, int verbose)
{
	double l;
	int i;

	gcp_write(train, in[0], half[0]);
	gcp_write(train, in[1], half[1]);
	gcp_write(train, in[2], pixels);
	for (i = 0; i < steps; i++) {
		l = gcp_step(train, .lr = gcp_rate_steps(0.001, i, 0, steps / 2, 0.5));
		if (verbose && i % 50 == 0)
			fprintf(stderr, "step %d: loss %g\n", i, l);
	}
	gcp_write(eval, in[2], pixels);
	gcp_forward(eval);
	gcp_read(eval, out, pixels);
}

int
main(int argc, char *argv[])
{
	static unsigned char tape_memory[GCP_MB(8)];
	gcp_arena arena = gcp_arena_from(tape_memory, sizeof(tape_memory));
	gcp_tape *net = gcp_tape_make(&arena, .ops = 128);
	gcp_tensor in[3], out, loss;
	gcp_plan train, eval;
	uint32_t width, height;
	size_t budget = SIZE_MAX;
	int steps = 400, verbose = 0;

	/* arguments */
	ARGBEGIN {
	case 'm':
		budget = estrtonum(EARGF(usage()), 1, 1 << 20) * 1000000;
		break;
	case 'n':
		steps = estrtonum(EARGF(usage()), 1, 1 << 20);
		break;
	case 'v':
		verbose = 1;
		break;
	default:
		usage();
	} ARGEND

	if (argc)
		usage();

	read_sizes(&width, &height);
	load(width, height);
	loss = record(net, width, height, in, &out);
	prepare(loss, out, budget, verbose, &train, &eval);
	denoise(&train, &eval, in, out, steps, verbose);
	if (gcp_error(net))
		die("%s", gcp_error(net));

	save(width, height);
	return fshut(stdout, "<stdout>");
}
