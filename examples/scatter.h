/* scatter.h - time of a step (up) against bytes (to the right) as SVG: named points in groups, and lines. */
#ifndef SCATTER_H
#define SCATTER_H

#include <stdio.h>
#include <string.h>

/* x: bytes in some unit, from 0; y: time, around 1. */
typedef struct scatter_point { double x, y; const char *name; int group; } scatter_point;
/* A row of the legend: points of one colour and shape (a circle, a square, a diamond, a triangle), or a line. */
typedef struct scatter_group { const char *name, *colour; int shape; } scatter_group;
typedef struct scatter_line { const double *x, *y; int count; const char *name, *style; } scatter_line;
typedef struct scatter_box { double x, y, width; } scatter_box;
/* Texts are written as they are. */
typedef struct scatter_plot {
    const char *title, *xname, *yname;
    const scatter_point *points; int count;
    const scatter_group *groups; int group_count;
    const scatter_line *lines; int line_count;
} scatter_plot;

enum {
    SCATTER_MAX = 32,
    SCATTER_WIDTH = 900,
    SCATTER_HEIGHT = 560,
    SCATTER_LEFT = 70,
    SCATTER_TOP = 80,
    SCATTER_BOTTOM = 500,
    SCATTER_RIGHT = 870
};

/* The least of 1, 2, 5 x 10^n that cuts a range into at most parts. */
static inline double scatter_tick(double range, int parts)
{
    static const double step[] = { 1, 2, 5 };
    double unit = 1e-3;
    for (int i = 0; ; i++) {
        if (i && i % 3 == 0) unit *= 10;
        if (step[i % 3] * unit * parts >= range) return step[i % 3] * unit;
    }
}

/* The axes: x from 0 to right, y from least to most. */
typedef struct scatter_range { double right, least, most; } scatter_range;

static inline double scatter_x(double x, scatter_range r)
{
    return SCATTER_LEFT + x / r.right * (SCATTER_RIGHT - SCATTER_LEFT);
}
static inline double scatter_y(double y, scatter_range r)
{
    return SCATTER_BOTTOM - (y - r.least) / (r.most - r.least) * (SCATTER_BOTTOM - SCATTER_TOP);
}

static inline int scatter_clear(const scatter_box *box, int count, scatter_box b)
{
    if (b.x < SCATTER_LEFT || b.x + b.width > SCATTER_WIDTH || b.y < SCATTER_TOP || b.y > SCATTER_BOTTOM - 12) return 0;
    for (int i = 0; i < count; i++)
        if (b.x < box[i].x + box[i].width && box[i].x < b.x + b.width && b.y < box[i].y + 12 && box[i].y < b.y + 12)
            return 0;
    return 1;
}

/* A name goes beside its point where no other name or point is: right, left, then a line lower or higher, and so on. */
static inline scatter_box scatter_place(const scatter_box *taken, int count, double x, double y, const char *name)
{
    scatter_box b = { x + 9, y - 6, 7.0 * (double)strlen(name) };
    for (int i = 1; i < 80 && !scatter_clear(taken, count, b); i++) {
        b.x = i % 2 ? x - 9 - b.width : x + 9;
        b.y = y - 6 + 13 * (i / 2 % 2 ? (i / 2 + 1) / 2 : -(i / 2) / 2);
    }
    return b;
}

static inline void scatter_axes(FILE *f, scatter_range r, const char *xname, const char *yname)
{
    const double xtick = scatter_tick(r.right, 8), ytick = scatter_tick(r.most - r.least, 8);
    for (int i = 0; 1 + i * ytick <= r.most; i++) {
        const double y = scatter_y(1 + i * ytick, r);
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%gx</text>\n",
                SCATTER_LEFT, SCATTER_RIGHT, y, y, SCATTER_LEFT - 8, y + 4, 1 + i * ytick);
    }
    for (int i = 0; i * xtick <= r.right; i++) {
        const double x = scatter_x(i * xtick, r);
        fprintf(f,
                "<line y1=\"%d\" y2=\"%d\" x1=\"%.1f\" x2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                SCATTER_TOP, SCATTER_BOTTOM, x, x, x, SCATTER_BOTTOM + 18, i * xtick);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
            SCATTER_RIGHT, SCATTER_BOTTOM + 40, xname, SCATTER_LEFT, SCATTER_TOP - 10, yname);
}

static inline scatter_range scatter_range_of(const scatter_point *p, int count)
{
    scatter_range r = { 0, 1, 1.1 };
    for (int i = 0; i < count; i++) {
        if (p[i].y < r.least) r.least = p[i].y;
        if (p[i].y > r.most) r.most = p[i].y;
        if (p[i].x > r.right) r.right = p[i].x;
    }
    const double margin = 0.05 * (r.most - r.least);
    r.least -= margin; r.most += 2 * margin; r.right *= 1.15;
    return r;
}

static inline void scatter_mark(FILE *f, double x, double y, const scatter_group *g)
{
    static const char *const shapes[] = { "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-4.5 -4.5h9v9h-9z",
                                          "M0 -6l6 6l-6 6l-6 -6z", "M0 -6l6 10h-12z" };
    fprintf(f, "<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"%s\" stroke=\"white\"/>", x, y,
            shapes[g->shape], g->colour);
}

/* In a line under the title; what lines mean in the next, beside the name of the axis. */
static inline void scatter_legend(FILE *f, const scatter_plot *s)
{
    double x = SCATTER_LEFT;
    for (int i = 0; i < s->group_count; i++) {
        scatter_mark(f, x + 5, 42, &s->groups[i]);
        fprintf(f, "<text x=\"%.1f\" y=\"46\">%s</text>\n", x + 15, s->groups[i].name);
        x += 36 + 6.4 * (double)strlen(s->groups[i].name);
    }
    x = SCATTER_LEFT + 250;
    for (int i = 0; i < s->line_count; i++) {
        fprintf(f, "<path fill=\"none\" %s d=\"M%.1f 66h22\"/><text x=\"%.1f\" y=\"70\">%s</text>\n",
                s->lines[i].style, x, x + 27, s->lines[i].name);
        x += 48 + 6.4 * (double)strlen(s->lines[i].name);
    }
}

static inline void scatter_lines(FILE *f, const scatter_plot *s, scatter_range r)
{
    for (int l = 0; l < s->line_count; l++) {
        fprintf(f, "<polyline fill=\"none\" %s points=\"", s->lines[l].style);
        for (int i = 0; i < s->lines[l].count; i++)
            fprintf(f, "%.1f,%.1f ", scatter_x(s->lines[l].x[i], r), scatter_y(s->lines[l].y[i], r));
        fprintf(f, "\"/>\n");
    }
}

/* All marks, then their names, which keep clear of all marks. */
static inline void scatter_points(FILE *f, const scatter_plot *s, scatter_range r)
{
    scatter_box taken[2 * SCATTER_MAX];
    const int count = s->count < SCATTER_MAX ? s->count : SCATTER_MAX;
    int boxes = 0;
    for (int i = 0; i < count; i++) {
        const double x = scatter_x(s->points[i].x, r), y = scatter_y(s->points[i].y, r);
        taken[boxes++] = (scatter_box) { x - 6, y - 6, 12 };
        scatter_mark(f, x, y, &s->groups[s->points[i].group]);
    }
    for (int i = 0; i < count; i++) {
        const scatter_point *p = &s->points[i];
        const char *colour = s->groups[p->group].colour;
        const double x = scatter_x(p->x, r), y = scatter_y(p->y, r);
        const scatter_box b = scatter_place(taken, boxes, x, y, p->name);
        const double end = b.x > x ? b.x - 1 : b.x + b.width + 1;
        taken[boxes++] = b;
        if (b.y + 6 > y + 12 || b.y + 6 < y - 12)
            fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                       "stroke-opacity=\"0.4\"/>\n", x, y, end, b.y + 6, colour);
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", b.x, b.y + 10, colour, p->name);
    }
}

static inline void scatter_svg(FILE *f, const scatter_plot *s)
{
    const scatter_range r = scatter_range_of(s->points, s->count);
    /* a long title is smaller */
    const double fits = (SCATTER_WIDTH - SCATTER_LEFT) / (0.58 * (double)(strlen(s->title) + 1));
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
               "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<text x=\"%d\" y=\"22\" "
               "font-size=\"%.1f\">%s</text>\n",
            SCATTER_WIDTH, SCATTER_HEIGHT, SCATTER_WIDTH, SCATTER_HEIGHT, SCATTER_LEFT, fits < 15 ? fits : 15,
            s->title);
    scatter_legend(f, s);
    scatter_axes(f, r, s->xname, s->yname);
    scatter_lines(f, s, r);
    scatter_points(f, s, r);
    fprintf(f, "</svg>\n");
}
#endif
