/* Pictures: what gcp_memory_html, gcp_trace_json, gcp_dot write of random networks, of hostile names and of copies is
   whole, and says what the plan says. test_pictures [FOLDER]: writes them there as well, for a browser and for dot. */
#include <locale.h>
#include <stdlib.h>
#include "support/check.h"
#include "support/json.h"
#include "support/random_net.h"
#include "support/svg.h"

enum { NETWORKS = 50, OPS_MAX = 4096 };
static unsigned char tape_memory[GCP_MB(48)], slab[GCP_MB(16)], far_memory[GCP_MB(8)];
static gcp_arena arena;
static char out[1 << 22];
static size_t used;
static const char *folder;

static void append(void *context, const char *s, size_t size)
{
    (void)context;
    CHECK(size > 0 && memchr(s, 0, size) == NULL && used + size < sizeof out);
    if (used + size < sizeof out) memcpy(out + used, s, size);
    out[used += size] = 0;
}
static const gcp_writer writer = { append, NULL };

static void keep(const char *name, const char *kind)
{
    char path[512];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, kind);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(out, 1, used, f) == used && fclose(f) == 0);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *s = strstr(text, what); s; s = strstr(s + strlen(what), what)) n++;
    return n;
}

/* ---- the page ---- */

/* Buffers that live at once share no byte, and every address that an instruction uses lies in one that lives. */
static void addresses(const char *plan)
{
    static double b[OPS_MAX][6];
    const char *buffers = json_get(plan, "buffers"), *lines = json_get(plan, "lines");
    const int count = json_count(buffers), instructions = json_count(lines);
    int apart = 1, inside = 1;
    CHECK(count > 0 && count < OPS_MAX);
    const char *at = json_at(buffers, 0);
    for (int i = 0; i < count && i < OPS_MAX; i++, at = json_space(json_space(json_value(at, 0)) + 1))
        for (int k = 0; k < 6; k++) b[i][k] = strtod(json_at(at, k), NULL);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            apart &= b[i][3] < b[j][2] || b[j][3] < b[i][2] || b[i][4] + b[i][5] <= b[j][4] ||
                     b[j][4] + b[j][5] <= b[i][4];
    at = json_at(lines, 0);
    for (int i = 0; i < instructions; i++, at = json_space(json_space(json_value(at, 0)) + 1)) {
        const char *uses = json_at(at, 6);
        for (int k = 2; json_at(uses, k); k += 3) {
            const double address = strtod(json_at(uses, k), NULL);
            int found = 0;
            for (int j = 0; j < count && !found; j++)
                found = b[j][2] <= i && i <= b[j][3] && b[j][4] <= address && address < b[j][4] + b[j][5];
            inside &= found;
        }
    }
    CHECK(apart && inside);
}

/* Planned seconds are the plan's. An instruction begins when the one before it is done, but for copies; it takes what
   was measured, else what was planned. */
static void page_seconds(const char *page, const gcp_plan *plan)
{
    double planned = 0, end = 0;
    int in_turn = 1, measured = 0;
    const char *at = json_at(json_get(page, "lines"), 0);
    for (int i = 0; i < plan->instructions; i++, at = json_space(json_space(json_value(at, 0)) + 1)) {
        const double seconds = gcp_instruction_seconds(plan, i), own = strtod(json_at(at, 7), NULL),
                     begin = strtod(json_at(at, 8), NULL), ends = strtod(json_at(at, 9), NULL);
        in_turn &= fabs(begin - end) <= 1e-8 * ends &&
                   fabs(ends - begin - (seconds > 0 ? seconds : own)) <= 1e-7 * ends;
        CHECK(ends >= begin && begin >= 0);
        planned += own;
        measured += seconds > 0;
        end = fmax(end, ends);
    }
    CHECK_NEAR(json_figure(page, "seconds"), plan->seconds, 1e-8 * plan->seconds);
    CHECK(plan->far_bytes ? planned >= plan->seconds * (1 - 1e-7) : fabs(planned - plan->seconds) <= 1e-7 * planned);
    CHECK(plan->far_bytes ? end <= planned || measured : in_turn);
}

static void page_plan(const char *page, const gcp_plan *plan, size_t budget)
{
    const char *lines = json_get(page, "lines");
    CHECK_INT(json_figure(page, "bytes"), ==, plan->bytes);
    CHECK_INT(json_figure(page, "slab"), ==, plan->slab_bytes);
    CHECK_INT(json_figure(page, "reruns"), ==, plan->reruns);
    CHECK_INT(json_figure(page, "state"), ==, plan->state_bytes);
    CHECK_INT(json_figure(page, "state") + json_figure(page, "slab"), ==, plan->bytes);
    CHECK_INT(json_figure(page, "budget"), ==, budget);
    CHECK_INT(json_count(lines), ==, plan->instructions);
    const char *peak = json_at(lines, (int)json_figure(page, "peak"));
    double most = 0;
    for (int i = 0; i < plan->instructions; i++) most = fmax(most, strtod(json_at(json_at(lines, i), 3), NULL));
    CHECK_NEAR(strtod(json_at(peak, 3), NULL), most, 0);
    addresses(page);
    page_seconds(page, plan);
}

/* Without a script there is one picture, and the reasons. */
static void page_plain(void)
{
    const char *plain = strstr(out, "<noscript>"), *end = strstr(out, "</noscript>"), *picture = strstr(out, "<svg ");
    CHECK(plain && end && picture && plain < picture && picture < end);
    CHECK(count(out, "<noscript>") == 1 && count(out, "</noscript>") == 1);
    const char *close = picture ? strstr(picture, "</svg>\n<pre>\n") : NULL;
    CHECK(close && close < end && !strncmp(end - 7, "</pre>\n", 7));
    CHECK_INT(count(out, "<svg "), ==, 1);
}

static void page(const char *name, const gcp_plan *plan, size_t budget, const gcp_plan *beside)
{
    static const char opening[] = "<script type=\"application/json\" id=\"data\">";
    used = 0;
    gcp_memory_html(plan, beside, writer);
    keep(name, "html");
    CHECK(!strncmp(out, "<!DOCTYPE html>\n<html lang=\"en\">", 32) && !strcmp(out + used - 16, "</body>\n</html>\n"));
    page_plain();
    CHECK_INT(count(out, "<script"), ==, 2);
    CHECK_INT(count(out, "</script>"), ==, 2);
    CHECK_INT(count(out, "http"), ==, count(out, "http://www.w3.org/"));     /* nothing from elsewhere */
    const char *data = strstr(out, opening) + sizeof opening - 1, *end = json_value(data, 0);
    CHECK(end && !strncmp(json_space(end), "</script>", 9));
    if (!end) return;
    CHECK(!memchr(data, '<', (size_t)(end - data)));
    CHECK_INT(json_count(data), ==, beside ? 2 : 1);
    page_plan(json_at(data, 0), plan, budget);
    if (beside) page_plan(json_at(data, 1), beside, 0);
}

/* ---- the trace ---- */

/* On each track one event at a time, to the nanosecond that is written: a reader adds, and drops what overlaps. An
   event is an instruction; 0 seconds where one only waits. */
static void trace(const char *name, const gcp_plan *plan, int measured)
{
    long long free_at[3] = { 0 };
    int events = 0, counters = 0, times = 0;
    used = 0;
    gcp_trace_json(plan, writer);
    keep(name, "json");
    const char *end = json_value(out, 0), *all = end ? json_get(out, "traceEvents") : NULL;
    CHECK(all && !*json_space(end));
    for (const char *e = all ? json_at(all, 0) : NULL; e;) {
        const char kind = json_get(e, "ph")[1];
        const int track = (int)json_figure(e, "tid");
        const double begin = json_figure(e, "ts"), wide = json_figure(e, "dur");
        counters += kind == 'C';
        if (kind == 'X') {
            CHECK(json_figure(json_get(e, "args"), "instruction") == ++events && (track == 1 || track == 2));
            CHECK(llround(1e3 * begin) >= free_at[track] && wide >= 0);
            free_at[track] = llround(1e3 * begin) + llround(1e3 * wide);
            const int timed = !strncmp(json_get(json_get(e, "args"), "measured"), "true", 4),
                      waits = !strncmp(json_get(e, "cat"), "\"arrive", 7);
            CHECK(!waits || wide == 0);
            if (timed && !waits) CHECK_NEAR(1e-6 * wide, gcp_instruction_seconds(plan, events - 1), 1.01e-9);
            times += timed;
        }
        e = json_space(json_value(e, 0));
        e = *e == ',' ? json_space(e + 1) : NULL;
    }
    CHECK_INT(events, ==, plan->instructions);
    CHECK_INT(counters, ==, plan->instructions);
    CHECK(measured ? times > 0 : times == 0);
}

/* ---- the graph ---- */

/* Quotes and braces close, and each arrow is between nodes that were declared. */
static void graph(const char *name, const gcp_plan *plan)
{
    static char known[2][OPS_MAX];
    int quoted = 0, braces = 0, deepest = 0, nodes = 0, arrows = 0, a, b;
    char from, to;
    used = 0;
    gcp_dot(plan, writer);
    keep(name, "dot");
    memset(known, 0, sizeof known);
    for (const char *s = out; *s; s++) {
        if (quoted && *s == '\\' && s[1]) s++;
        else if (*s == '"') quoted = !quoted;
        else if (!quoted && *s == '{') deepest = ++braces > deepest ? braces : deepest;
        else if (!quoted && *s == '}') CHECK(--braces >= 0);
        else CHECK(!quoted || (unsigned char)*s >= 0x20);
    }
    CHECK(!quoted && !braces && deepest > 0);
    for (const char *line = out; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (sscanf(line, "%c%d -> %c%d", &from, &a, &to, &b) == 4) {
            arrows++;
            CHECK(known[from == 'i'][a % OPS_MAX] && to == 'n' && known[0][b % OPS_MAX]);
        } else if ((*line == 'n' || *line == 'i') && sscanf(line, "%c%d [", &from, &a) == 2) {
            nodes++;
            known[from == 'i'][a % OPS_MAX] = 1;
        }
    CHECK(nodes > 0 && arrows >= nodes / 2);
    CHECK((count(out, " more time") > 0) == (plan->reruns > 0));
}

/* ---- the SVG ---- */

/* Names of any bytes leave characters that XML has, in UTF-8; tags close. */
static void svg(const char *name, const gcp_plan *plan, const gcp_plan *beside)
{
    used = 0;
    gcp_memory_svg(plan, beside, writer);
    keep(name, "svg");
    CHECK(!strncmp(out, "<svg ", 5) && !strcmp(out + used - 7, "</svg>\n"));
    CHECK_INT(count(out, "<title>"), ==, count(out, "</title>"));
    for (const unsigned char *s = (const unsigned char *)out; *s;) {
        const int more = *s < 0x80 ? 0 : *s < 0xC2 ? -1 : *s < 0xE0 ? 1 : *s < 0xF0 ? 2 : *s < 0xF5 ? 3 : -1;
        CHECK(more >= 0 && (*s >= 0x20 || *s == '\n') && *s != 0x7F);
        for (int i = 1; i <= more; i++) CHECK((s[i] & 0xC0) == 0x80);
        s += more < 0 ? 1 : more + 1;
    }
}

static void random_networks(void)
{
    for (unsigned seed = 1; seed <= NETWORKS; seed++) {
        char name[32];
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        random_net r = net_make(&arena, seed);
        gcp_plan_opts o = net_policy((int)(seed % 8), seed, 4);
        gcp_plan all = gcp_plan_make(r.loss, .policy = GCP_POLICY_KEEP_ALL);
        gcp_plan plan = net_plan(r.loss, o, seed);
        CHECK(gcp_plan_ok(&all));
        if (!gcp_plan_ok(&all) || !gcp_plan_ok(&plan)) { gcp_error_clear(r.tape); continue; }
        snprintf(name, sizeof name, "net%u", seed);
        page(name, &plan, o.budget, seed % 2 ? &all : NULL);
        trace(name, &plan, 0);
        graph(name, &plan);
    }
}

/* A small network whose names are NAME; with .far its values wait in far memory. */
static void hostile(const char *file, const char *bad, size_t far)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(2, 8, 8, 3)), x = image;
    for (int i = 0; i < 6; i++)
        GCP_SEGMENT(net, "layer") {
            x = gcp_conv2d(x, .out = 8, .k = 3, .pad = 1);
            x = i == 3 ? gcp_tanh(x, .name = bad) : gcp_tanh(x);
        }
    gcp_tensor loss = gcp_mean(x);
    if (gcp_error(net)) { CHECK(strstr(gcp_error(net), "name")); return; }
    gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = all.bytes * 9 / 10,
                                  .optimizer = GCP_OPTIMIZER_SGD, .far = far, .far_only = far > 0);
    CHECK(gcp_plan_ok(&plan));
    if (!gcp_plan_ok(&plan)) return;
    CHECK(gcp_bind(&plan, slab, sizeof slab) == GCP_OK);
    if (far) CHECK(plan.far_bytes > 0 && gcp_far_bind(&plan, far_memory, sizeof far_memory) == GCP_OK);
    static float pixels[2 * 8 * 8 * 3];
    gcp_write(&plan, image, pixels);
    gcp_profile(&plan, .lr = 0.1, .repeats = 1);
    CHECK(!gcp_error(net));
    page(file, &plan, all.bytes * 9 / 10, &all);
    trace(file, &plan, 1);
    graph(file, &plan);
    svg(file, &plan, &all);
}

static void names(void)
{
    static const char *const bad[] = { "</script><b>bold</b>", "\"quotes\\\" and \\N \\", "<!--", "a&b;'c'",
                                       "\xC3\xA9\xE2\x82\xAC", "\xFF\xC3(\xED\xA0\x80", "]]>", "{}%s%n",
                                       "\x01\x1B\xEF\xBF\xBF" };
    char file[32];
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        snprintf(file, sizeof file, "name%d", i);
        hostile(file, bad[i], 0);
    }
    hostile("far", "far", sizeof far_memory);
}

/* ---- curves and marks that come close ---- */

/* A bound below keep-all's time stays in the picture. */
static void curve(void)
{
    const gcp_point points[] = { { 1000, 1000, 1000, 1.3, 1, 0.91, 0 }, { 2000, 2000, 2000, 1, 1, 0.91, 0 } };
    used = 0;
    gcp_sweep_svg(points, 2, writer);
    CHECK_INT(svg_texts_outside(out), ==, 0);
    for (const char *at = strstr(out, "points=\""); at; at = strstr(at + 1, "points=\"")) {
        double x, y;
        for (const char *p = at + 8; sscanf(p, "%lf,%lf", &x, &y) == 2; p = strchr(p, ' ') + 1)
            CHECK(x >= 70 && x <= 850 && y >= 55 && y <= 405);
    }
}

/* Two plans of nearly as many bytes: their marks do not overprint. */
static void close_marks(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor y = gcp_input(net, "x", GCP_SHAPE(4, 64));
    for (int i = 0; i < 6; i++) y = gcp_tanh(gcp_linear(y, .out = 64));
    const gcp_tensor loss = gcp_mean(y);
    const gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
                   same = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = all.bytes);
    double x[2] = { 0 }, high[2] = { 0 };
    int found = 0;
    used = 0;
    gcp_memory_svg(&same, &all, writer);
    for (const char *at = strstr(out, "<text "); at && found < 2; at = strstr(at + 1, "<text ")) {
        const char *bold = strstr(at, "font-weight=\"bold\""), *end = strchr(at, '>');
        if (bold && bold < end && sscanf(at, "<text x=\"%lf\" y=\"%lf\"", &x[found], &high[found]) == 2) found++;
    }
    CHECK(found == 2 && (fabs(high[0] - high[1]) > 14 || fabs(x[0] - x[1]) > 500));
    CHECK_INT(svg_texts_outside(out), ==, 0);
}

/* ---- a locale that writes 0,5 ---- */

static void all_texts(const gcp_plan *plan, const gcp_point *points, int count)
{
    used = 0;
    gcp_memory_html(plan, NULL, writer);
    gcp_trace_json(plan, writer);
    gcp_dot(plan, writer);
    gcp_memory_svg(plan, NULL, writer);
    gcp_sweep_svg(points, count, writer);
    gcp_sweep_csv(points, count, writer);
    gcp_why_print(plan, writer);
    gcp_layers_print(plan, writer);
    gcp_plan_print(plan, writer);
    gcp_graph_print(plan, writer);
    gcp_costs_print(plan, writer);
}

/* The same bytes are written, and costs and rates are read, as where the program set no locale. */
static void locales(void)
{
    static const char *const commas[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR", "de-DE", "ps_AF" };
    static char plain[sizeof out];
    gcp_point points[3] = { { 0 } };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 64)), y = x;
    for (int i = 0; i < 6; i++) GCP_SEGMENT(net, "layer") y = gcp_tanh(gcp_linear(y, .out = 64));
    const gcp_tensor loss = gcp_mean(y);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD);
    static float numbers[4 * 64];
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, numbers);
    gcp_profile(&plan, .lr = 0.1, .repeats = 1);
    for (int i = 0; i < 3; i++) points[i].budget = plan.bytes * (size_t)(8 + i) / 8;
    const int fit = gcp_sweep(loss, points, 3);
    all_texts(&plan, points, fit);
    memcpy(plain, out, used + 1);
    used = 0;
    gcp_costs_print(&plan, writer);
    char *costs = strcpy(plain + strlen(plain) + 1, out);
    const gcp_plan priced = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .costs = costs, .rates = "* 0.5");
    CHECK(fit == 3 && gcp_plan_ok(&priced) && !gcp_error(net));
    for (int i = 0; i < (int)(sizeof commas / sizeof *commas); i++) {
        if (!setlocale(LC_ALL, commas[i])) continue;
        all_texts(&plan, points, fit);
        CHECK(!strcmp(out, plain));
        const gcp_plan again = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .costs = costs, .rates = "* 0.5");
        CHECK(gcp_plan_ok(&again));
        CHECK_NEAR(again.seconds, priced.seconds, 0);
        setlocale(LC_ALL, "C");
        if (gcp_error(net)) break;
    }
}

/* Nothing is written of nothing, nor without room for the times of the instructions, which is an error. */
static void nothing(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    const gcp_plan plan = gcp_plan_make(gcp_mean(gcp_tanh(gcp_input(net, "x", GCP_SHAPE(4, 64)))), .inference = 1);
    const ptrdiff_t size = arena.size, scratch = arena.scratch;
    used = 0;
    arena.size = arena.used;
    gcp_memory_html(&plan, NULL, writer);
    CHECK(!used && gcp_error_code(net) == GCP_E_CAPACITY && strstr(gcp_error(net), "gcp_memory_html"));
    gcp_error_clear(net);
    arena.size = size;
    gcp_memory_html(&plan, NULL, writer);
    CHECK(used && arena.scratch == scratch && !gcp_error(net));
    gcp_plan none = { 0 };
    used = 0;
    gcp_memory_html(NULL, NULL, writer);
    gcp_memory_html(&none, &none, writer);
    gcp_trace_json(&none, writer);
    gcp_dot(&none, writer);
    CHECK_INT(used, ==, 0);
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : NULL;
    random_networks();
    names();
    curve();
    close_marks();
    locales();
    nothing();
    return check_done();
}
