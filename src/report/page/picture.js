
/* ---- the picture: what one sees of it, its scales, its axes, both views ---- */

const LEFT = 72, RIGHT = 10, CURVE = 56, TOP = CURVE + 36, BELOW = 34;
/* Of all plans: by kind or address, seconds or instructions to the right, the part of each axis that one sees. */
const view = { kind: false, time: false, x: [0, 1], y: [0, 1] };
let wide = 900, high = 320, top_bytes = 1, whole = 1;

function element(parent, tag, attributes, text) {
  const svg = tag === 'svg' || parent.namespaceURI === 'http://www.w3.org/2000/svg';
  const e = document.createElementNS(svg ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml', tag);
  set(e, attributes);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}
function set(e, attributes) { for (const name in attributes) e.setAttribute(name, attributes[name]); }

/* A budget counts state and slab; addresses are the slab's alone. */
const budget_at = p => p.budget - (view.kind ? 0 : p.state);

/* The scales of all plans. A budget a little above them is in the picture, too. */
function scale() {
  const most = Math.max(...plans.map(p => view.kind ? p.bytes : p.slab), 1);
  const near = plans.filter(p => p.budget && budget_at(p) <= 1.15 * most).map(p => 1.02 * budget_at(p));
  top_bytes = Math.max(most, ...near);
  whole = view.time ? Math.max(...plans.map(p => p.time)) : steps;
}
const x = at => LEFT + wide * (at / whole - view.x[0]) / (view.x[1] - view.x[0]);
const y = size => TOP + high * (1 - (size / top_bytes - view.y[0]) / (view.y[1] - view.y[0]));
const inside_x = at => clamp(x(at), LEFT, LEFT + wide), inside_y = size => clamp(y(size), TOP, TOP + high);

/* Where an instruction begins on the axis, and which one is there. */
const edge = (p, i) => view.time ? p.start[i] : i;
function instruction(p, at) {
  if (!view.time) return clamp(Math.floor(at), 0, p.lines.length - 1);
  let low = 0, above = p.lines.length;
  while (low < above - 1) {
    const middle = (low + above) >> 1;
    if (p.start[middle] <= at) low = middle; else above = middle;
  }
  return low;
}
const at_x = px => whole * (view.x[0] + (view.x[1] - view.x[0]) * (px - LEFT) / wide);
const seen = p => [instruction(p, at_x(LEFT)), instruction(p, at_x(LEFT + wide))];
/* An instruction, or what lives from one to another. In time each has its own end: copies overlap. */
const span = (p, first, last) => view.time ? [p.lines[first].begin, p.lines[last].end] : [first, last + 1];

/* Round numbers from low to high, about as many as asked for: 1, 2, 2.5 or 5 times a power of ten. */
function ticks(low, high, about, integers) {
  const least = Math.max((high - low) / Math.max(about, 1), integers ? 1 : 0);
  const ten = 10 ** Math.floor(Math.log10(least) + 1e-9);
  const step = [1, 2, 2.5, 5, 10].map(k => k * ten).find(s => s >= .999 * least && !(integers && s % 1));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-6) || 0; k * step <= high + 1e-6 * step; k++) found.push(k * step);
  return found;
}
/* The same in the largest unit that needs at most two digits behind the point. */
function unit_ticks(low, high, about, all) {
  let k = all.indexOf(unit_of(high, all));
  while (k && (high - low) / about / all[k][0] < .01) k--;
  const [one, word] = all[k];
  return ticks(low / one, high / one, about, one === 1 && all === units)
    .map(n => [n * one, `${digits(n, 4)} ${word}`]);
}

function axes(p) {
  const g = p.axes, [from, to] = view.y.map(part => part * top_bytes), bottom = TOP + high;
  for (const [size, text] of unit_ticks(from, to, Math.round(high / 60), units)) {
    element(g, 'line', { class: 'grid', x1: LEFT, x2: LEFT + wide, y1: y(size), y2: y(size) });
    element(g, 'text', { x: LEFT - 6, y: y(size) + 4, 'text-anchor': 'end' }, text);
  }
  const [left, right] = view.x.map(part => part * whole), about = Math.max(2, Math.round(wide / 100));
  const marks = view.time ? unit_ticks(left, right, about, clocks)
    : ticks(left + 1, right, about, true).map(n => [n - .5, digits(n, 0)]);
  for (const [at, text] of marks) {
    element(g, 'line', { class: 'grid', x1: x(at), x2: x(at), y1: bottom, y2: bottom + 5 });
    const anchor = x(at) > LEFT + wide - 24 ? 'end' : 'middle';
    element(g, 'text', { x: anchor === 'end' ? LEFT + wide : x(at), y: bottom + 18, 'text-anchor': anchor }, text);
  }
  element(g, 'rect', { class: 'grid', fill: 'none', x: LEFT, y: bottom + 25, width: wide, height: 5 });
  element(g, 'rect', { class: 'part', x: LEFT + wide * view.x[0], y: bottom + 25,
    width: wide * (view.x[1] - view.x[0]), height: 5 });
}

/* What lies over the picture: where backward begins, the budget. */
function lines_over(p) {
  const g = p.above, turn = p.turn < 0 ? -1 : x(edge(p, p.turn));
  if (turn >= LEFT && turn <= LEFT + wide) {
    for (const name of ['halo', 'turn'])
      element(g, 'line', { class: name, x1: turn, x2: turn, y1: TOP - 14, y2: TOP + high });
    const late = turn > LEFT + wide - 110;
    element(g, 'text', { class: 'inside', x: turn + (late ? -4 : 4), y: TOP - 5,
      'text-anchor': late ? 'end' : 'start' }, 'backward begins');
  }
  if (!p.budget) return;
  const at = y(budget_at(p));
  const where = at < TOP ? ', above the picture' : at > TOP + high ? ', below the picture' : '';
  for (const name of where ? [] : ['halo', 'budget'])
    element(g, 'line', { class: name, x1: LEFT, x2: LEFT + wide, y1: at, y2: at });
  element(g, 'text', { class: 'inside', x: LEFT + wide - 6, 'text-anchor': 'end',
    y: where ? (at < TOP ? TOP + 14 : TOP + high - 8) : at < TOP + 24 ? at + 15 : at - 5 },
  `budget ${size(p.budget)}${where || (view.kind || !p.state ? '' : ', less the state')}`);
}

function curve(p) {
  const g = p.axes, most = Math.max(...plans.map(q => q.lines[q.peak].size), 1);
  const at = n => CURVE + 12 - CURVE * n / most, [first, last] = seen(p);
  element(g, 'text', { x: LEFT + 4, y: 12 }, 'live');
  for (const [n, text] of unit_ticks(0, most, 2, units)) {
    element(g, 'line', { class: 'grid', x1: LEFT, x2: LEFT + wide, y1: at(n), y2: at(n) });
    element(g, 'text', { x: LEFT - 6, y: at(n) + 4, 'text-anchor': 'end' }, text);
  }
  let d = '';
  for (let i = first; i <= last; i++)
    d += `${d ? 'L' : 'M'}${inside_x(edge(p, i)).toFixed(1)} ${at(p.lines[i].size).toFixed(1)}` +
      `H${inside_x(edge(p, i + 1)).toFixed(1)}`;
  element(g, 'path', { class: 'curve', d });
  const peak = x((edge(p, p.peak) + edge(p, p.peak + 1)) / 2);
  if (peak >= LEFT && peak <= LEFT + wide)
    element(p.above, 'circle', { class: 'peak', r: 4, cx: peak, cy: at(p.lines[p.peak].size) });
}

/* ---- by address ---- */

/* In pixels: left, right, upper and lower edge of what is seen of a rectangle; nothing where it is outside. */
function box(first, last, low, up) {
  if (x(last) < LEFT || x(first) > LEFT + wide || y(low) < TOP || y(up) > TOP + high) return null;
  return [inside_x(first), inside_x(last), inside_y(up), inside_y(low)];
}
function put_rectangle(e, seen) {
  e.setAttribute('display', seen ? '' : 'none');
  if (!seen) return;
  const [left, right, up, low] = seen;
  set(e, { x: left.toFixed(2), width: Math.max(right - left, .3).toFixed(2), y: up.toFixed(2),
    height: Math.max(low - up, .3).toFixed(2), 'stroke-width': Math.min(right - left, low - up) > 3 ? .8 : 0 });
}
const buffer_box = (p, b) => box(...span(p, b.first, b.last), b.at, b.at + b.size);
const workspace_box = (p, i) => box(...span(p, i, i), p.numbers, p.numbers + p.lines[i].workspace);
function rectangles(p) {
  for (const r of p.rects) put_rectangle(r.e, r.b ? buffer_box(p, r.b) : workspace_box(p, r.i));
}

/* ---- by kind ---- */

/* Bytes below a layer and up to its upper edge. */
function layer_edges(p, kind, i) {
  let low = 0;
  for (const k of layers) {
    if (k === kind) break;
    low += p.sums[i][k];
  }
  return [low, low + p.sums[i][kind]];
}

function areas(p) {
  const [first, last] = seen(p), count = last - first + 1, low = new Array(count).fill(0);
  const left = i => inside_x(edge(p, i)).toFixed(1);
  for (const kind of layers) {
    let up = '', down = '', any = 0;
    for (let k = 0; k < count; k++) {
      const i = first + k, n = p.sums[i][kind];
      down = `L${left(i + 1)} ${inside_y(low[k]).toFixed(1)}H${left(i)}${down}`;
      low[k] += n;
      any += n;
      up += `${up ? 'L' : 'M'}${left(i)} ${inside_y(low[k]).toFixed(1)}H${left(i + 1)}`;
    }
    p.paths[kind].setAttribute('d', any ? `${up}${down}Z` : '');
  }
  const [bottom, up] = [0, p.state].map(inside_y);
  if (bottom - up > 16) element(p.above, 'text', { class: 'inside', x: LEFT + 6, y: (bottom + up) / 2 + 4 },
    `state ${size(p.state)}`);
}

/* ---- what is pointed at, or chosen in the table ---- */

/* A mark: { b, i } a buffer at an instruction, { w } its workspace, { k, i } a kind at an instruction. */
function mark_box(p, m) {
  if (m.k !== undefined) return box(...span(p, m.i, m.i), ...layer_edges(p, m.k, m.i));
  if (view.kind) return m.b && m.b.first <= m.i && m.i <= m.b.last ? mark_box(p, { k: m.b.kind, i: m.i }) : null;
  return m.b ? buffer_box(p, m.b) : workspace_box(p, m.w);
}
function outline(p) {
  const seen = p.mark && mark_box(p, p.mark);
  const d = seen ? `M${seen[0]} ${seen[2]}H${Math.max(seen[1], seen[0] + 1)}V${Math.max(seen[3], seen[2] + 1)}` +
    `H${seen[0]}Z` : '';
  for (const e of p.outline) e.setAttribute('d', d);
}
function choose(p, m) {
  for (const q of plans) {
    q.mark = q === p ? m : null;
    outline(q);
  }
}

/* ---- the whole ---- */

const caption = p => `To the right: ${view.time ? `time, ${p.clock}` : 'instructions, in order'}. Up: ` +
  (view.kind ? `bytes, by kind; the state, ${size(p.state)}, lies at the bottom, and below the top are gaps.`
    : `address in the slab, ${size(p.slab)}; the state takes ${size(p.state)} beside it.`);

function build_picture(p, main) {
  p.svg = element(main, 'svg', { class: 'picture', role: 'img' });
  p.axes = element(p.svg, 'g', {});
  p.plot = element(p.svg, 'rect', { class: 'plot', x: LEFT, y: 0 });
  p.by_address = element(p.svg, 'g', {});
  p.by_kind = element(p.svg, 'g', {});
  p.rects = p.buffers.map(b =>
    ({ b, e: element(p.by_address, 'rect', { class: `k k${b.kind}`, 'data-b': b.index }) }));
  p.lines.forEach((l, i) => l.workspace &&
    p.rects.push({ i, e: element(p.by_address, 'rect', { class: `k k${WORKSPACE}`, 'data-w': i }) }));
  p.paths = kinds.map((_, k) => element(p.by_kind, 'path', { class: `k k${k}`, 'stroke-width': .8, 'data-k': k }));
  p.band = element(p.svg, 'rect', { class: 'band', y: TOP });
  p.cursor = ['halo', 'cursor'].map(name => element(p.svg, 'line', { class: name }));
  p.above = element(p.svg, 'g', { class: 'above' });
  p.outline = ['halo', 'hot'].map(name => element(p.svg, 'path', { class: name }));
  p.caption = element(main, 'p', { class: 'caption' });
}

function draw(p) {
  const all = [LEFT + wide + RIGHT, TOP + high + BELOW];
  const label = `Memory over ${view.time ? 'time' : 'instructions'} ${view.kind ? 'by kind' : 'and address'}: ` +
    `${bytes(p.slab)} over ${count(p.lines.length, 'instruction')}. ` +
    'What is live at the cursor stands in the table below.';
  set(p.svg, { viewBox: `0 0 ${all[0]} ${all[1]}`, height: all[1], 'aria-label': label });
  set(p.plot, { width: wide, height: TOP + high });
  p.axes.textContent = p.above.textContent = '';
  axes(p);
  curve(p);
  p.by_address.setAttribute('display', view.kind ? 'none' : '');
  p.by_kind.setAttribute('display', view.kind ? '' : 'none');
  if (view.kind) areas(p); else rectangles(p);
  lines_over(p);
  outline(p);
  draw_cursor(p);
  p.caption.textContent = caption(p);
}

function draw_cursor(p) {
  const [from, to] = span(p, shown(p), shown(p)), middle = x((from + to) / 2);
  const [left, right] = [from, to].map(inside_x), out = middle < LEFT || middle > LEFT + wide;
  set(p.band, { x: left, width: right - left > 3 ? right - left : 0, height: high });
  for (const e of p.cursor) set(e, { x1: middle, x2: middle, y1: 4, y2: TOP + high, display: out ? 'none' : '' });
}

/* The text of a picture keeps its size: the picture is drawn anew for each width. */
function fit() {
  const box = plans[0].svg.getBoundingClientRect();
  wide = Math.max(box.width - LEFT - RIGHT, 100);
  high = clamp(innerHeight * .42, 220, 420);
  scale();
  plans.forEach(draw);
}

const ruled = { 2: 'M2 0V8M6 0V8', 3: 'M-2 2L2 -2M0 8L8 0M6 10L10 6', 4: 'M0 2H8M0 6H8', 7: 'M2 2L6 6M6 2L2 6',
  9: 'M-2 2L2 -2M0 8L8 0M6 10L10 6' };
/* Kinds differ in grey, too. */
function patterns() {
  const svg = element(document.body, 'svg', { id: 'patterns', width: 0, height: 0, 'aria-hidden': true });
  for (const k of [2, 3, 4, 6, 7, 9]) {
    const e = element(svg, 'pattern', { id: 'fill' + k, width: 8, height: 8, patternUnits: 'userSpaceOnUse' });
    element(e, 'rect', { width: 8, height: 8, style: `fill: var(--k${k})` });
    if (ruled[k]) element(e, 'path', { class: `lines k${k}`, d: ruled[k], 'stroke-width': k === 9 ? .6 : 1.1 });
    else for (const at of [2, 6]) element(e, 'circle', { class: 'lines', cx: at, cy: at, r: .7 });
  }
}
