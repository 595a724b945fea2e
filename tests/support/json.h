/* json.h - just enough of RFC 8259 to check what the library writes: values are skipped, members and elements found. */
#ifndef JSON_H
#define JSON_H
#include <stdlib.h>
#include <string.h>

static inline const char *json_space(const char *s) { return s + strspn(s, " \t\r\n"); }

static inline const char *json_string(const char *s)
{
    for (s++; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20) return NULL;
        if (*s != '\\') continue;
        s++;
        if (*s == 'u') {
            if (strspn(s + 1, "0123456789abcdefABCDEF") < 4) return NULL;
            s += 4;
        } else if (!*s || !strchr("\"\\/bfnrt", *s)) return NULL;
    }
    return s + 1;
}

static inline const char *json_number(const char *s)
{
    char *end;
    if (*s != '-' && (*s < '0' || *s > '9')) return NULL;
    strtod(s, &end);
    for (const char *c = s; c < end; c++)
        if (!strchr("+-.0123456789eE", *c)) return NULL;
    return end;
}

/* The end of the value at s, or NULL: it is not one. */
static inline const char *json_value(const char *s, int depth)
{
    static const char *const words[] = { "true", "false", "null" };
    s = json_space(s);
    for (int i = 0; i < 3; i++)
        if (!strncmp(s, words[i], strlen(words[i]))) return s + strlen(words[i]);
    if (*s == '"') return json_string(s);
    if (*s != '{' && *s != '[') return json_number(s);
    const char close = *s == '{' ? '}' : ']';
    if (depth > 32) return NULL;
    for (s = json_space(s + 1); *s != close; s = json_space(s)) {
        if (close == '}') {
            if (*s != '"' || !(s = json_string(s)) || *(s = json_space(s)) != ':') return NULL;
            s++;
        }
        if (!(s = json_value(s, depth + 1))) return NULL;
        s = json_space(s);
        if (*s != ',') break;
        s = json_space(s + 1);
        if (*s == close) return NULL;
    }
    return *s == close ? s + 1 : NULL;
}

/* Element i of an array, or NULL. */
static inline const char *json_at(const char *array, int i)
{
    const char *s = json_space(array) + 1;
    for (s = json_space(s); *s != ']'; s = json_space(s + 1)) {
        if (!i--) return s;
        s = json_space(json_value(s, 0));
        if (*s != ',') return NULL;
    }
    return NULL;
}
static inline int json_count(const char *array)
{
    int n = 0;
    for (const char *s = json_at(array, 0); s; n++) {
        s = json_space(json_value(s, 0));
        s = *s == ',' ? json_space(s + 1) : NULL;
    }
    return n;
}

/* A member of an object, or NULL. */
static inline const char *json_get(const char *object, const char *name)
{
    const size_t n = strlen(name);
    for (const char *s = json_space(object) + 1; *(s = json_space(s)) == '"'; s++) {
        const int found = !strncmp(s + 1, name, n) && s[n + 1] == '"';
        s = json_space(json_space(json_string(s)) + 1);
        if (found) return s;
        s = json_space(json_value(s, 0));
        if (*s != ',') return NULL;
    }
    return NULL;
}
static inline double json_figure(const char *object, const char *name)
{
    const char *s = json_get(object, name);
    return s ? strtod(s, NULL) : -1;
}
#endif
