/* scatter.h - a scatter plot with named points and lines as SVG: peak memory against time. */
#ifndef SCATTER_H
#define SCATTER_H

#include <stdio.h>
#include <string.h>

typedef struct scatter_point { double x, y; const char *name, *colour; } scatter_point;
typedef struct scatter_line { const double *x, *y; int count; const char *style; } scatter_line;
typedef struct scatter_box { double x, y, width; } scatter_box;

enum {
    SCATTER_MAX = 32,
    SCATTER_WIDTH = 900,
    SCATTER_HEIGHT = 520,
    SCATTER_LEFT = 70,
    SCATTER_TOP = 50,
    SCATTER_BOTTOM = 460,
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

/* The axes: x from least to most, y from 0 to top. */
typedef struct scatter_range { double least, most, top; } scatter_range;

static inline double scatter_x(double x, scatter_range r)
{
    return SCATTER_LEFT + (x - r.least) / (r.most - r.least) * (SCATTER_RIGHT - SCATTER_LEFT);
}
static inline double scatter_y(double y, scatter_range r)
{
    return SCATTER_BOTTOM - y / r.top * (SCATTER_BOTTOM - SCATTER_TOP);
}

static inline int scatter_clear(const scatter_box *box, int count, scatter_box b)
{
    if (b.x < SCATTER_LEFT || b.x + b.width > SCATTER_WIDTH || b.y < SCATTER_TOP) return 0;
    for (int i = 0; i < count; i++)
        if (b.x < box[i].x + box[i].width && box[i].x < b.x + b.width && b.y < box[i].y + 12 && box[i].y < b.y + 12)
            return 0;
    return 1;
}

/* A name goes beside its point where no other name or point is: right, left, then a line lower or higher, and so on. */
static inline scatter_box scatter_place(const scatter_box *taken, int count, double x, double y, const char *name)
{
    scatter_box b = { x + 9, y - 6, 7.0 * (double)strlen(name) };
    for (int i = 1; i < 60 && !scatter_clear(taken, count, b); i++) {
        b.x = i % 2 ? x - 9 - b.width : x + 9;
        b.y = y - 6 + 13 * (i / 2 % 2 ? (i / 2 + 1) / 2 : -(i / 2) / 2);
    }
    return b;
}

static inline void scatter_axes(FILE *f, scatter_range r, const char *xname, const char *yname)
{
    double xtick = scatter_tick(r.most - r.least, 8), ytick = scatter_tick(r.top, 8);
    for (int i = 0; i * ytick <= r.top; i++) {
        double y = scatter_y(i * ytick, r);
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%g</text>\n",
                SCATTER_LEFT, SCATTER_RIGHT, y, y, SCATTER_LEFT - 8, y + 4, i * ytick);
    }
    for (int i = 0; 1 + i * xtick <= r.most; i++) {
        double x = scatter_x(1 + i * xtick, r);
        fprintf(f,
                "<line y1=\"%d\" y2=\"%d\" x1=\"%.1f\" x2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%gx</text>\n",
                SCATTER_TOP, SCATTER_BOTTOM, x, x, x, SCATTER_BOTTOM + 18, 1 + i * xtick);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
            SCATTER_RIGHT, SCATTER_BOTTOM + 40, xname, SCATTER_LEFT, SCATTER_TOP - 10, yname);
}

static inline scatter_range scatter_range_of(const scatter_point *p, int count)
{
    scatter_range r = { 1, 1.1, 0 };
    for (int i = 0; i < count; i++) {
        if (p[i].x < r.least) r.least = p[i].x;
        if (p[i].x > r.most) r.most = p[i].x;
        if (p[i].y > r.top) r.top = p[i].y;
    }
    double margin = 0.05 * (r.most - r.least);
    r.least -= margin; r.most += 2 * margin; r.top *= 1.25;
    return r;
}

/* y from 0, x around 1, as far as the points go. title and names are written as they are. */
static inline void scatter_svg(FILE *f, const scatter_point *p, int count, const scatter_line *lines, int line_count,
                               const char *title, const char *xname, const char *yname)
{
    scatter_box taken[2 * SCATTER_MAX];
    int boxes = 0;
    if (count > SCATTER_MAX) count = SCATTER_MAX;
    scatter_range r = scatter_range_of(p, count);
    /* a long title is smaller */
    double fits = (SCATTER_WIDTH - SCATTER_LEFT) / (0.58 * (double)(strlen(title) + 1));
    fprintf(
        f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<text x=\"%d\" y=\"22\" font-size=\"%.1f\">%s</text>\n",
        SCATTER_WIDTH, SCATTER_HEIGHT, SCATTER_WIDTH, SCATTER_HEIGHT, SCATTER_LEFT, fits < 15 ? fits : 15, title);
    scatter_axes(f, r, xname, yname);
    for (int l = 0; l < line_count; l++) {
        fprintf(f, "<polyline fill=\"none\" %s points=\"", lines[l].style);
        for (int i = 0; i < lines[l].count; i++)
            fprintf(f, "%.1f,%.1f ", scatter_x(lines[l].x[i], r), scatter_y(lines[l].y[i], r));
        fprintf(f, "\"/>\n");
    }
    for (int i = 0; i < count; i++) {
        double x = scatter_x(p[i].x, r), y = scatter_y(p[i].y, r);
        taken[boxes++] = (scatter_box) { x - 6, y - 6, 12 };
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" fill-opacity=\"0.8\"/>\n", x, y, p[i].colour);
    }
    for (int i = 0; i < count; i++) {
        double x = scatter_x(p[i].x, r), y = scatter_y(p[i].y, r);
        scatter_box b = scatter_place(taken, boxes, x, y, p[i].name);
        double end = b.x > x ? b.x - 1 : b.x + b.width + 1;
        taken[boxes++] = b;
        if (b.y + 6 > y + 12 || b.y + 6 < y - 12)
            fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-opacity=\"0.4\"/>\n",
                    x, y, end, b.y + 6, p[i].colour);
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", b.x, b.y + 10, p[i].colour, p[i].name);
    }
    fprintf(f, "</svg>\n");
}
#endif
