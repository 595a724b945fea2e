/* svg.h - whether the texts of a picture lie inside it, by a usual width of letters. */
#ifndef SVG_H
#define SVG_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline double svg_number(const char *from, const char *to, const char *name, double otherwise)
{
    const char *at = strstr(from, name);
    return at && at < to ? atof(at + strlen(name)) : otherwise;
}

/* Letters from body to end, without what stands in tags. */
static inline double svg_letters(const char *body, const char *end)
{
    int letters = 0, tag = 0;
    for (; body < end; body++) {
        tag |= *body == '<';
        letters += !tag;
        if (*body == '>') tag = 0;
    }
    return letters;
}

/* How many texts run out of the picture; the first is named. */
static inline int svg_texts_outside(const char *svg)
{
    const char *view = strstr(svg, "viewBox=\"0 0 ");
    double width = view ? atof(view + 13) : 0, usual = svg_number(svg, svg + 300, "font-size=\"", 16);
    int outside = 0;
    for (const char *at = strstr(svg, "<text "); at; at = strstr(at + 1, "<text ")) {
        const char *body = strchr(at, '>') + 1, *end = strstr(body, "</text>");
        double x = svg_number(at, body, " x=\"", 0), size = svg_number(at, body, "font-size=\"", usual),
               wide = 0.55 * size * svg_letters(body, end);
        const char *anchor = strstr(at, "text-anchor=\"");
        if (anchor && anchor < body) x -= anchor[13] == 'e' ? wide : anchor[13] == 'm' ? wide / 2 : 0;
        if (x >= 0 && x + wide <= width) continue;
        if (!outside++) fprintf(stderr, "outside a picture of %g: '%.*s'\n", width, (int)(end - body), body);
    }
    return width > 0 ? outside : -1;
}
#endif
