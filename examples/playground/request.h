/* request.h - what the page asks for, as one line of text.

   Words KEY=VALUE with a space between; `graph` is the last and takes the rest of the line, in which \n is a new line:

       network=chain layers=36 policy=segments cuts=6,12,18,24,30
       network=resnet50 policy=budget budget=600000000
       network=graph policy=keep_all graph=f a 1 4096 0\nf b 1 4096 0 a\nb c 1 4096 0 b

   network   chain, resnet, resnet50, unet, densenet, graph
   layers    of the chain, 1 to 60; default 36
   policy    keep_all, segments (with the cuts), uniform, sqrt, recursive, cheap, budget; default keep_all
   cuts      the layers, counted from 0, that a segment begins with, in ascending order
   segments  of uniform; default: one more than cuts
   budget    of budget, in bytes
   more      1: also plan GCP_POLICY_BUDGET in the bytes that the policy takes; no schedule in them beats its bound
   guess     a prediction of the bytes, as 300000, 293KiB, 12MiB, 1GiB; of the chain as 12tensors, too */
#ifndef PLAYGROUND_REQUEST_H
#define PLAYGROUND_REQUEST_H

#include "gcp.h"

enum { MOST_LAYERS = 60, MOST_GRAPH_LAYERS = 4096, MOST_REQUEST = 1 << 16 };

typedef struct request {
    char network[16];
    int layers, cut_count, segments, more;
    int cuts[MOST_LAYERS];
    gcp_policy policy;
    size_t budget, guess;
    int in_tensors;    /* the guess is a number of tensors */
    const char *graph; /* NULL: none */
    unsigned given;    /* a bit for each key that was there */
    char error[160];   /* "": none */
} request;

static const char *const policy_words[] = { "segments", "keep_all",  "uniform", "checkpoints",
                                            "sqrt",     "recursive", "cheap",   "budget" };

static int wrong(request *r, const char *text, const char *found)
{
    if (!*r->error) snprintf(r->error, sizeof r->error, "%s%s%.60s", text, *found ? " " : "", found);
    return 0;
}

/* Decimal digits alone, at most `most`. Returns what follows them, or NULL. */
static const char *number(const char *text, size_t most, size_t *n)
{
    *n = 0;
    if (*text < '0' || *text > '9') return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        const size_t digit = (size_t)(*text - '0');
        if (digit > most || *n > (most - digit) / 10) return NULL;
        *n = 10 * *n + digit;
    }
    return text;
}

static int read_number(request *r, const char *key, const char *value, size_t least, size_t most, size_t *n)
{
    char text[96];
    const char *end = number(value, most, n);
    if (end && !*end && *n >= least) return 1;
    snprintf(text, sizeof text, "%.16s is a whole number from %zu to %zu, not", key, least, most);
    return wrong(r, text, value);
}

static int read_cuts(request *r, const char *value)
{
    for (size_t cut, last = 0; *value; last = cut) {
        const char *end = number(value, MOST_LAYERS - 1, &cut);
        if (!end || (*end && *end != ',') || cut <= last || r->cut_count == MOST_LAYERS)
            return wrong(r, "cuts are layers from 1 to 59 in ascending order, with commas between, not", value);
        r->cuts[r->cut_count++] = (int)cut;
        value = end + (*end == ',');
    }
    return 1;
}

static int read_policy(request *r, const char *value)
{
    for (int i = 0; i < 8; i++)
        if (i != GCP_POLICY_CHECKPOINTS && !strcmp(value, policy_words[i])) {
            r->policy = (gcp_policy)i;
            return 1;
        }
    return wrong(r, "no policy", value);
}

static int read_guess(request *r, const char *value, size_t most)
{
    static const char *const units[] = { "", "KiB", "MiB", "GiB", "tensors" };
    const char *end = number(value, most, &r->guess);
    for (int i = 0; end && i < 5; i++) {
        const size_t unit = i < 4 ? (size_t)1 << 10 * i : 1;
        if (strcmp(end, units[i]) || r->guess > most / unit) continue;
        r->guess *= unit;
        r->in_tensors = i == 4;
        return r->guess > 0 || wrong(r, "the prediction is 0:", value);
    }
    return wrong(r, "a prediction is a whole number of bytes, KiB, MiB, GiB or tensors, not", value);
}

static int read_word(request *r, char *word)
{
    enum { BYTES = 0x7fffffff }; /* planned bytes stay below it where size_t has 32 bits, too */
    static const char *const keys[] = { "network", "layers", "policy", "cuts", "segments", "budget", "more", "guess" };
    char *value = strchr(word, '=');
    size_t n = 0;
    int key = 0;
    if (!value) return wrong(r, "not KEY=VALUE:", word);
    *value++ = 0;
    while (key < 8 && strcmp(word, keys[key])) key++;
    if (key == 8) return wrong(r, "no key", word);
    if (r->given >> key & 1) return wrong(r, "twice:", word);
    r->given |= 1u << key;
    if (key == 0) {
        snprintf(r->network, sizeof r->network, "%s", value);
        return strlen(value) < sizeof r->network || wrong(r, "no network", value);
    }
    if (key == 2) return read_policy(r, value);
    if (key == 3) return read_cuts(r, value);
    if (key == 7) return read_guess(r, value, BYTES);
    const size_t most = key == 1 || key == 4 ? MOST_LAYERS : key == 6 ? 1 : BYTES;
    if (!read_number(r, word, value, key < 6, most, &n)) return 0;
    if (key == 1) r->layers = (int)n;
    if (key == 4) r->segments = (int)n;
    if (key == 5) r->budget = n;
    if (key == 6) r->more = (int)n;
    return 1;
}

/* The text of a graph, in which \n is a new line. */
static const char *read_graph(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++) {
        const int line = from[0] == '\\' && from[1] == 'n';
        *to++ = (char)(line ? '\n' : *from);
        from += line;
    }
    *to = 0;
    return text;
}

/* Reads text, which it cuts into words. */
static int read_request(request *r, char *text)
{
    memset(r, 0, sizeof *r);
    r->layers = 36;
    r->policy = GCP_POLICY_KEEP_ALL;
    while (*text) {
        if (!strncmp(text, "graph=", 6)) {
            r->graph = read_graph(text + 6);
            break;
        }
        char *end = text + strcspn(text, " ");
        const int more = *end == ' ';
        *end = 0;
        if (*text && !read_word(r, text)) return 0;
        text = end + more;
    }
    if (!strcmp(r->network, "graph") != (r->graph != NULL))
        return wrong(r, "network=graph and graph= belong together", "");
    if (r->policy == GCP_POLICY_BUDGET && !r->budget) return wrong(r, "policy=budget needs a budget", "");
    if (!r->segments) r->segments = r->cut_count + 1;
    return 1;
}

#endif
