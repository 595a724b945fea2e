/* The options of a plan: which go together, their defaults, their ranges. */

static int gcpi_plan_bad(gcp_tape *t, const gcp_plan_opts *o, const char *text)
{
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s", text);
    return 0;
}

/* Every option that was given must be one that the policy or the optimiser uses. Called before gcpi_plan_defaults, as
   defaults do not count as given. */
static int gcpi_plan_applies(gcp_tape *t, const gcp_plan_opts *o)
{
    const gcp_policy policy = o->policy;
    const int sgd = o->optimizer == GCP_OPTIMIZER_SGD,
              adam = o->optimizer == GCP_OPTIMIZER_ADAM || o->optimizer == GCP_OPTIMIZER_ADAMW;
    const struct { int given, applies; const char *text;
    } options[] = { { o->segments != 0, policy == GCP_POLICY_UNIFORM, ".segments belongs to GCP_POLICY_UNIFORM" },
                    { o->balance != 0, policy == GCP_POLICY_UNIFORM, ".balance belongs to GCP_POLICY_UNIFORM" },
                    { o->checkpoints != 0, policy == GCP_POLICY_CHECKPOINTS,
                      ".checkpoints belongs to GCP_POLICY_CHECKPOINTS" },
                    { o->replay != 0, policy == GCP_POLICY_CHECKPOINTS, ".replay belongs to GCP_POLICY_CHECKPOINTS" },
                    { o->effort != GCP_EFFORT_DEFAULT, policy == GCP_POLICY_BUDGET,
                      ".effort belongs to GCP_POLICY_BUDGET" },
                    { o->progress != NULL, policy == GCP_POLICY_BUDGET && !o->list,
                      ".progress belongs to GCP_POLICY_BUDGET" },
                    { o->progress_context != NULL, o->progress != NULL, ".progress_context needs .progress" },
                    { o->momentum != 0, sgd, ".momentum belongs to GCP_OPTIMIZER_SGD" },
                    { o->beta1 != 0 || o->beta2 != 0, adam,
                      ".beta1 and .beta2 belong to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW" },
                    { o->epsilon != 0, adam, ".epsilon belongs to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW" },
                    { o->weight_decay != 0, sgd || adam, ".weight_decay belongs to an .optimizer" },
                    { o->clip_value != 0, sgd || adam, ".clip_value belongs to an .optimizer" },
                    { o->clip_norm != 0, sgd || adam, ".clip_norm belongs to an .optimizer" },
                    { o->optimizer != 0, !o->inference, "an inference plan has no .optimizer" },
                    { gcpi_integer(o->accumulate) > 1, !o->inference, "an inference plan has no .accumulate" },
                    { o->on_gradient != NULL, !o->inference, "an inference plan has no .on_gradient" },
                    { o->fuse_update > 0, !o->inference, "an inference plan has no .fuse_update" },
                    { o->keep != NULL, !o->inference, "an inference plan keeps nothing: no .keep" },
                    { o->train || o->freeze || gcpi_integer(o->frozen_norms), !o->inference,
                      "an inference plan trains nothing: no .train, .freeze or .frozen_norms" },
                    { o->rates || o->decays, o->optimizer != GCP_OPTIMIZER_NONE, ".rates and .decays need .optimizer" },
                    { o->budget == (size_t)GCP_ZERO, 0, ".budget is at least 1 byte; left out there is no limit" } };
    if (o->list && policy != GCP_POLICY_SEGMENTS && policy != GCP_POLICY_BUDGET)
        return gcpi_plan_bad(t, o, ".list stands in place of a .policy; GCP_POLICY_BUDGET alone goes with it");
    if (o->inference && (o->segments || o->balance || o->checkpoints || o->replay))
        return gcpi_plan_bad(t, o, "an inference plan keeps nothing: no .segments, .balance, .checkpoints or .replay");
    if ((o->on_wait || o->hook_context) && !o->on_gradient)
        return gcpi_plan_bad(t, o, ".on_wait and .hook_context need .on_gradient");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].applies) return gcpi_plan_bad(t, o, options[i].text);
    return 1;
}

static void gcpi_plan_defaults(gcp_plan_opts *o)
{
    o->momentum = gcpi_option(o->momentum, 0);
    o->beta1 = gcpi_option(o->beta1, 0.9);
    o->beta2 = gcpi_option(o->beta2, 0.999);
    o->epsilon = gcpi_option(o->epsilon, 1e-8);
    o->weight_decay = gcpi_option(o->weight_decay, 0);
    o->clip_value = gcpi_option(o->clip_value, 0);
    o->clip_norm = gcpi_option(o->clip_norm, 0);
    o->segments = gcpi_integer(o->segments);
    o->checkpoints = gcpi_integer(o->checkpoints);
    o->accumulate = gcpi_integer(o->accumulate);
    if (o->far == (size_t)GCP_ZERO) o->far = 0;
}

/* The optimiser's numbers must be in range. Called after gcpi_plan_defaults. */
static int gcpi_plan_numbers_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const struct { const char *name; double value, below;
    } numbers[] = { { ".momentum", o->momentum, HUGE_VAL },
                    { ".weight_decay", o->weight_decay, HUGE_VAL },
                    { ".clip_value", o->clip_value, HUGE_VAL },
                    { ".clip_norm", o->clip_norm, HUGE_VAL },
                    { ".epsilon", o->epsilon, HUGE_VAL },
                    { ".beta1", o->beta1, 1 },
                    { ".beta2", o->beta2, 1 } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value >= 0 && numbers[i].value < numbers[i].below) continue;
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s = %g; at least 0%s", numbers[i].name, numbers[i].value,
                  numbers[i].below > 1 ? ", and finite" : " and below 1");
        return 0;
    }
    return 1;
}

static int gcpi_target_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const gcp_target *g = o->target;
    if (g->align & (g->align - 1) || g->align > 1 << 30)
        return gcpi_plan_bad(t, o, "the target's .align is not a power of two up to 2^30");
    const double rates[] = { g->flops_per_second, g->bf16_flops_per_second, g->bytes_per_second,
                             g->far_bytes_per_second };
    for (int i = 0; i < 4; i++)
        if (!gcpi_finite(rates[i]) || rates[i] < 0)
            return gcpi_plan_bad(t, o, "the target's .flops_per_second, .bf16_flops_per_second, .bytes_per_second and "
                                       ".far_bytes_per_second are 0 (the default) or positive, and finite");
    if (g->threads < 0) {
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "the target's .threads = %d; at least 0", g->threads);
        return 0;
    }
    const gcp_device *d = g->device;
    if (d && (!g->kernels || !d->copy || !d->fill || !d->timed || !d->trouble || !d->play != !d->forget))
        return gcpi_plan_bad(
            t, o,
            "the target's .device needs .kernels, and copy, fill, timed and trouble, and play and forget together");
    if (!g->copy_start != !g->copy_wait)
        return gcpi_plan_bad(t, o, "the target's .copy_start and .copy_wait belong together");
    if (g->align && g->align < sizeof(double))
        return gcpi_plan_bad(t, o, "the target's .align is below 8");
    if (o->store && g->kernels && d && !(g->kernels[GCP_ROW_APPLY].flags & GCP_FLAG_BF16))
        return gcpi_plan_bad(t, o, ".store = GCP_STORE_BF16: the target's kernels take no bfloat16 (a GPU's "
                                   "do from compute capability 8.0 on)");
    if (g->isa >= 0 && g->isa <= gcpi_isa_best()) return 1;
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning,
              "the target's .isa: found %d, expected 0 (the best) or one of GCP_ISA_... that this machine has", g->isa);
    return 0;
}

/* Whether updates are fused, and why: GCPI_FUSED_ITSELF where nothing can tell. */
enum { GCPI_FUSED = 1, GCPI_FUSED_ITSELF };
static int gcpi_updates_early(const gcp_plan_opts *o)
{
    if (o->fuse_update || !o->optimizer || o->inference) return o->fuse_update > 0 ? GCPI_FUSED : 0;
    if (o->list) return gcpi_list_fuses(o->list) ? GCPI_FUSED : 0;
    if (o->policy != GCP_POLICY_BUDGET || o->clip_norm > 0 || o->accumulate > 1 || o->on_gradient) return 0;
    return GCPI_FUSED_ITSELF;
}

static int gcpi_plan_patterns_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const struct { const char *name, *text; int lines; } texts[] = {
        { ".train", o->train, 0 }, { ".freeze", o->freeze, 0 }, { ".rates", o->rates, 1 }, { ".decays", o->decays, 1 }
    };
    gcpi_word word;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *wrong = texts[i].text ? gcpi_patterns_wrong(t, texts[i].text, texts[i].lines, &word) : NULL;
        if (!wrong) continue;
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s: '%.*s' %s (the first parameter is %.120s)", texts[i].name,
                  (int)GCPI_MIN(word.length, 120u), word.at, wrong,
                  t->parameter_count ? t->parameters[0].path : "none");
        return 0;
    }
    return 1;
}

/* Each pattern of .keep fits an op. */
static int gcpi_plan_keep_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    char word[200], text[220];
    const char *wrong = o->keep ? gcpi_op_patterns_wrong(t, 0, o->keep, word, sizeof word) : NULL;
    snprintf(text, sizeof text, ".keep: %s", wrong ? wrong : "");
    return !wrong || gcpi_plan_bad(t, o, text);
}

/* An option that changes nothing was given by mistake. */
static int gcpi_plan_effects_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    int frozen = !o->frozen_norms, decays = !o->decays || o->weight_decay > 0;
    for (int x = 1; x < t->tensor_count; x++) {
        if (t->tensors[x].kind != GCPI_PARAMETER) continue;
        frozen |= !gcpi_trains(t, x, o);
        decays |= gcpi_numbers_fit(o->decays, t->parameters[t->tensors[x].parameter].path, 0) > 0;
    }
    if (!frozen) return gcpi_plan_bad(t, o, ".frozen_norms: nothing is frozen (.freeze, .train, gcp_freeze)");
    return decays || gcpi_plan_bad(t, o, ".decays: its numbers are 0, and so is .weight_decay: nothing decays");
}

static int gcpi_store_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    if (o->store == GCP_STORE_REAL) return 1;
    if (o->store == GCP_STORE_BF16 && sizeof(gcp_real) == sizeof(float)) return 1;
    if (o->store == GCP_STORE_BF16)
        return gcpi_plan_bad(t, o, ".store = GCP_STORE_BF16 needs a build whose gcp_real is float; here it is double");
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "unknown .store: found %d, expected GCP_STORE_REAL or GCP_STORE_BF16",
              (int)o->store);
    return 0;
}
/* Checks the options and fills in their defaults. */
static int gcpi_plan_options_ok(gcp_tape *t, gcp_plan_opts *o)
{
    int *const flags[] = { &o->balance, &o->replay, &o->far_only, &o->inference, &o->nesterov, &o->fuse_update,
                           &o->frozen_norms, &o->accumulate_labels, &o->no_groups, &o->check };
    if (o->fuse_update == GCP_ZERO) o->fuse_update = GCP_NEVER;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) *flags[i] = gcpi_integer(*flags[i]);
    if (!gcpi_store_ok(t, o)) return 0;
    if ((int)o->policy < 0 || o->policy > GCP_POLICY_BUDGET) return gcpi_plan_bad(t, o, "unknown .policy");
    if ((int)o->effort < 0 || o->effort > GCP_EFFORT_THOROUGH) return gcpi_plan_bad(t, o, "unknown .effort");
    if ((int)o->optimizer < 0 || o->optimizer > GCP_OPTIMIZER_ADAMW) return gcpi_plan_bad(t, o, "unknown .optimizer");
    if (!gcpi_plan_applies(t, o) || !gcpi_plan_patterns_ok(t, o) || !gcpi_plan_keep_ok(t, o)) return 0;
    gcpi_plan_defaults(o);
    if (!gcpi_plan_numbers_ok(t, o) || !gcpi_plan_effects_ok(t, o)) return 0;
    if (o->far && (o->policy != GCP_POLICY_BUDGET || o->list || o->inference))
        return gcpi_plan_bad(t, o, ".far belongs to GCP_POLICY_BUDGET");
    if (o->far_only && !o->far) return gcpi_plan_bad(t, o, ".far_only without .far");
    if (o->policy == GCP_POLICY_BUDGET && !o->budget && !o->list)
        return gcpi_plan_bad(t, o, "GCP_POLICY_BUDGET needs .budget (bytes)");
    if (o->fuse_update > 0 && !o->optimizer) return gcpi_plan_bad(t, o, ".fuse_update without .optimizer");
    o->fuse_update = gcpi_updates_early(o);
    if (o->fuse_update && o->clip_norm > 0)
        return gcpi_plan_bad(
            t, o, ".fuse_update (or a .list of fused updates) with .clip_norm: the norm needs all gradients first");
    if (o->fuse_update && o->accumulate > 1)
        return gcpi_plan_bad(t, o,
                             ".fuse_update (or a .list of fused updates) with .accumulate: gradients are not finished "
                             "before the last micro-batch");
    if (o->accumulate < 0) return gcpi_plan_bad(t, o, ".accumulate is at least 0");
    if (o->accumulate_labels && o->accumulate < 2)
        return gcpi_plan_bad(t, o, ".accumulate_labels belongs to .accumulate");
    if (o->check && o->check != GCP_CHECK) return gcpi_plan_bad(t, o, ".check is GCP_CHECK or 0");
    if (o->nesterov && (o->optimizer != GCP_OPTIMIZER_SGD || o->momentum == 0))
        return gcpi_plan_bad(t, o, ".nesterov needs GCP_OPTIMIZER_SGD with .momentum");
    return !o->target || gcpi_target_ok(t, o);
}

/* Every parameter of the tape must be recorded (again, after a reset); the error names the first that is missing. */
static int gcpi_parameters_seen(gcp_tape *t, gcp_at at)
{
    for (int i = 0; i < t->parameter_count; i++)
        if (!t->parameters[i].tensor) {
            gcpi_fail(t, GCP_E_PARAMETERS, at, t->planning,
                      "'%s' is in the state, but was not recorded again after gcp_tape_reset", t->parameters[i].path);
            return 0;
        }
    return 1;
}

static int gcpi_plan_ready(gcp_tensor loss, gcp_plan_opts *o)
{
    gcp_tape *t = loss.tape;
    if (!t) return 0;
    gcpi_segments_close(t, 0);
    if (!gcpi_usable(t, loss, o->at, t->planning) || !gcpi_plan_options_ok(t, o) || !gcpi_parameters_seen(t, o->at))
        return 0;
    const gcpi_tensor *e = gcpi_get(loss);
    char text[64];
    if (e->producer < 0) return gcpi_plan_bad(t, o, "the tensor is an input or parameter: there is nothing to run");
    if (!o->inference && (gcpi_count(e->shape) != 1 || e->dtype != GCP_DTYPE_REAL)) {
        gcpi_fail(t, GCP_E_SHAPE, o->at, t->planning, "the loss is %s, not a scalar (gcp_mean makes one)",
                  gcpi_shape_text(e->shape, text, sizeof text));
        return 0;
    }
    return 1;
}
