
/* ---- what one does: cursor, tables, zoom, what is told, keys ---- */

/* The instruction, and the plan that it counts in: in time, the other one shows what it does at that moment. */
let at = 0, lead = plans[0], timer = 0, resting = 0;
const ids = ['at', 'play', 'tip', 'peak', 'addresses', 'kinds', 'listed', 'timed', 'in', 'out', 'taller', 'all'];
const [slider, play, tip, peak, ...tools] = ids.map(id => document.getElementById(id));
const ROWS = 200;

function shown(p) {
  const i = clamp(at, 0, (view.time ? lead : p).lines.length - 1);
  return !view.time || p === lead ? i : instruction(p, (lead.start[i] + lead.start[i + 1]) / 2);
}

function changes(p, i) {
  const over = p.over[i].map(o => `${name_of(p, [o.item])} (${bytes(p.items[o.item][1])}, ` +
    `${o.gone.length ? `over ${name_of(p, o.gone)}` : `in the buffer of ${name(p, o.b, i - 1)}`})`);
  const born = p.born[i].map(b => `${name(p, b, i)} (${bytes(b.size)})`);
  const dies = p.dies[i].map(b => `${name(p, b, i)} (${bytes(b.size)}; ${ending(p, b)})`);
  const last = i === p.lines.length - 1;
  element(p.now, 'p', {}, `Born: ${born.concat(over).join('; ') || 'nothing'}`);
  element(p.now, 'p', {}, `Free after it: ${last ? 'the step ends' : dies.join('; ') || 'nothing'}`);
  if (!view.kind) return;
  const parts = layers.filter(k => p.sums[i][k]).map(k => `${kinds[k]} ${size(p.sums[i][k])}`);
  element(p.now, 'p', {}, `By kind: ${parts.join(' + ')} = ${size(p.state + p.lines[i].top)}`);
}

function seconds_text(l) {
  if (l.seconds) return `. Measured: ${duration(l.seconds)}${l.planned ? `, planned ${duration(l.planned)}` : ''}`;
  return l.planned ? `. Planned: ${duration(l.planned)}` : '';
}

function show(p) {
  const i = shown(p), l = p.lines[i];
  draw_cursor(p);
  p.now.textContent = '';
  const text = element(p.now, 'p', {}, `Instruction ${i + 1} of ${p.lines.length}: `);
  element(text, 'b', {}, `${l.kind} ${l.name}`);
  text.append(`, ${words[l.kind] || l.kind}${l.place ? ', ' + l.place : ''}. Live: ${bytes(l.size)}` +
    `${i === p.peak ? ', the peak' : ''}${l.workspace ? `, workspace ${bytes(l.workspace)}` : ''}` +
    `${seconds_text(l)}.`);
  changes(p, i);
}

/* Where the cursor is, as a part of the axis. It stays in what one sees. */
const cursor = () => (view.time ? (lead.start[at] + lead.start[at + 1]) / 2 : at + .5) / whole;
function follow() {
  const middle = cursor(), [from, to] = view.x;
  if (middle < from || middle > to) slide('x', middle - (to - from) / 2, to - from);
}

/* The tables are the slow part: they follow when the cursor rests. */
function go(to) {
  at = clamp(to, 0, (view.time ? lead.lines.length : steps) - 1);
  slider.max = (view.time ? lead.lines.length : steps) - 1;
  slider.value = at;
  slider.setAttribute('aria-valuetext', `instruction ${at + 1} of ${+slider.max + 1}`);
  follow();
  plans.forEach(show);
  clearTimeout(resting);
  resting = setTimeout(show_tables, 150);
}

/* ---- tables ---- */

/* Columns: the head, what it sorts by, what stands in it. Numbers begin with the largest. */
const columns = [
  ['tensor', (p, b, i) => name(p, b, i)],
  ['what it is', (p, b) => kinds[b.kind]],
  ['bytes', (p, b) => b.size, 'n'],
  ['address', (p, b) => b.at, 'n'],
  ['since', (p, b) => b.first + 1, 'n'],
  ['read next', (p, b, i) => b.reads.includes(i) ? i : next_reader(b, i)]];

function sort_by(p, column) {
  p.down = p.sorted === column ? !p.down : columns[column][2] === 'n';
  p.sorted = column;
  show_live(p, shown(p));
}

function build_table(p, region) {
  const table = element(region, 'table', {}), head = element(element(table, 'thead', {}), 'tr', {});
  p.heads = columns.map(([text, , kind], k) => {
    const th = element(head, 'th', { scope: 'col', class: kind || '' });
    element(th, 'button', { type: 'button' }, text).addEventListener('click', () => sort_by(p, k));
    return th;
  });
  p.table = element(table, 'tbody', {});
  p.sorted = 2;
  p.down = true;
  p.table.addEventListener('focusin', e => tell_row(p, e.target.closest('tr')));
  p.table.addEventListener('focusout', hide);
  p.table.addEventListener('keydown', e => {
    const row = e.target.closest('tr'), next = { ArrowDown: row.nextSibling, ArrowUp: row.previousSibling }[e.key];
    if (!next) return;
    (next.querySelector('button') || next).focus();
    e.preventDefault();
  });
}

function add_row(p, b, i) {
  const row = element(p.table, 'tr', { tabindex: -1, 'data-b': b.index, 'aria-describedby': 'tip' });
  const first = element(row, 'td', {});
  element(element(first, 'svg', { class: 'swatch', 'aria-hidden': true }), 'rect',
    { class: `k${b.kind}`, width: '100%', height: '100%' });
  first.append(name(p, b, i));
  for (const [, value, kind] of columns.slice(1, 5))
    element(row, 'td', { class: kind || '' }, value(p, b, i).toLocaleString('en'));
  element(row, 'td', {}, read_next(p, b, i));
  return row;
}

function show_live(p, i) {
  const value = columns[p.sorted][1], order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (p.down ? -1 : 1);
  const live = p.buffers.filter(b => b.first <= i && i <= b.last).map(b => [value(p, b, i), b])
    .sort(([m, a], [n, b]) => order(m, n) || b.at - a.at).map(([, b]) => b);
  p.summary.textContent = `Live now: ${count(live.length, 'buffer')}; ` +
    `each takes whole blocks of ${p.align} bytes. A column's head sorts`;
  p.heads.forEach((th, k) => {
    const [word, arrow] = k !== p.sorted ? ['none', ''] : p.down ? ['descending', ' \u2193']
      : ['ascending', ' \u2191'];
    set(th, { 'aria-sort': word });
    th.firstChild.textContent = columns[k][0] + arrow;
  });
  const focused = p.table.contains(document.activeElement) ? document.activeElement.dataset.b : undefined;
  p.table.textContent = '';
  if (!p.details.open) return;
  const rows = live.slice(0, p.every ? live.length : ROWS).map(b => add_row(p, b, i));
  if (rows.length) (rows.find(r => r.dataset.b === focused) || rows[0]).tabIndex = 0;
  if (focused !== undefined) p.table.querySelector('[tabindex="0"]').focus();
  if (rows.length === live.length) return;
  const more = element(element(element(p.table, 'tr', {}), 'td', { colspan: 6 }), 'button', { type: 'button' },
    `Show ${live.length - ROWS} more`);
  more.addEventListener('click', () => { p.every = true; show_live(p, i); });
}
function show_tables() { plans.forEach(p => show_live(p, shown(p))); }

/* ---- what is told ---- */

function hide() {
  tip.style.display = 'none';
  choose(null);
}

/* Beside the box, right, left, below or above, and not over the row; where no side has room, at the corner that is
   farthest from the pointer. */
function place_tip(box, px, py, row = { left: 0, right: 0, top: 0, bottom: 0 }) {
  tip.style.display = 'block';
  const w = tip.offsetWidth, h = tip.offsetHeight, right = innerWidth - w - 4, low = innerHeight - h - 4, gap = 8;
  const beside = clamp(clamp(py, box.top, box.bottom) - h / 2, 4, Math.max(low, 4));
  const along = clamp(clamp(px, box.left, box.right) - w / 2, 4, Math.max(right, 4));
  const spots = [[box.right + gap, beside], [box.left - gap - w, beside], [along, box.bottom + gap],
    [along, box.top - gap - h]];
  const free = ([a, b]) => a >= 4 && a <= right && b >= 4 && b <= low &&
    (a > row.right || a + w < row.left || b > row.bottom || b + h < row.top);
  const [left, top] = spots.find(free) ||
    [px < innerWidth / 2 ? right : 4, py < innerHeight / 2 ? low : 4];
  tip.style.left = Math.max(left, 0) + 'px';
  tip.style.top = Math.max(top, 0) + 'px';
}

/* A mark's box on the screen. */
function screen_box(p, m) {
  const seen = mark_box(p, m), svg = p.svg.getBoundingClientRect();
  return seen && { left: svg.left + seen[0], right: svg.left + seen[1], top: svg.top + seen[2],
    bottom: svg.top + seen[3] };
}
function tell(p, m, text, px, py, row) {
  choose(p, m);
  tip.textContent = text;
  const box = screen_box(p, m), unseen = !box || (row && (box.bottom < 0 || box.top > innerHeight));
  place_tip(!unseen ? box : row || { left: px, right: px, top: py, bottom: py }, px, py, unseen ? undefined : row);
}

function tell_pointed(p, e) {
  const { b, w, k } = e.target.dataset, i = instruction(p, at_x(e.clientX - p.svg.getBoundingClientRect().left));
  if (b) tell(p, { b: p.buffers[b], i }, tip_text(p, p.buffers[b], i), e.clientX, e.clientY);
  else if (w) tell(p, { w: +w }, workspace_text(p, +w), e.clientX, e.clientY);
  else if (k) tell(p, { k: +k, i }, kind_text(p, +k, i), e.clientX, e.clientY);
  else hide();
}

/* The same from the table: beside the rectangle where one sees it, else below the row. */
function tell_row(p, row) {
  const b = p.buffers[row.dataset.b], i = shown(p);
  if (!b) return;
  for (const r of p.table.querySelectorAll('[tabindex="0"]')) r.tabIndex = -1;
  row.tabIndex = 0;
  const at = row.getBoundingClientRect();
  tell(p, { b, i }, tip_text(p, b, i), at.left + at.width / 2, at.bottom, at);
}

/* ---- zoom ---- */

function slide(axis, from, long) {
  const low = clamp(from, 0, 1 - long);
  view[axis] = [low, low + long];
  fit();
}
/* Makes the part of an axis that one sees so many times as long; what is at that part of the picture stays. */
function stretch(axis, times, stays) {
  const [low, high] = view[axis], least = axis === 'x' ? Math.min(1, 4 / steps) : 1e-4;
  const long = clamp((high - low) * times, least, 1);
  slide(axis, low + (high - low - long) * stays, long);
}
const pan = (axis, part) => slide(axis, view[axis][0] + part * (view[axis][1] - view[axis][0]),
  view[axis][1] - view[axis][0]);
/* By keys and buttons: about the cursor. */
function zoom(times) {
  const [low, high] = view.x, middle = cursor();
  stretch('x', times, middle < low || middle > high ? .5 : (middle - low) / (high - low));
}
const taller = times => stretch('y', times, view.y[0] ? .5 : 0);
function show_all() {
  view.x = [0, 1];
  view.y = [0, 1];
  fit();
}

/* What a switch changes is whole again, but for the instructions that one sees. */
function switch_to(change) {
  const places = seen(lead), part = view.x[1] - view.x[0];
  if ('kind' in change) view.y = [0, 1];
  Object.assign(view, change);
  scale();
  if ('time' in change && part < 1) view.x = [edge(lead, places[0]) / whole, edge(lead, places[1] + 1) / whole];
  document.body.className = view.kind ? 'by-kind' : 'by-address';
  [!view.kind, view.kind, !view.time, view.time].forEach((on, k) => tools[k].setAttribute('aria-pressed', on));
  hide();
  fit();
  go(at);
}

/* ---- pointer, wheel, fingers ---- */

/* The wheel alone scrolls the page, as anywhere; two fingers on a touch pad come as the wheel with ctrl. */
function wheel(p, e) {
  const from = p.svg.getBoundingClientRect(), px = (e.clientX - from.left - LEFT) / wide;
  const py = 1 - (e.clientY - from.top - TOP) / high, turned = (e.deltaY || e.deltaX) * (e.deltaMode ? 20 : 1);
  const times = Math.exp(clamp(turned, -60, 60) / 200);
  if (e.ctrlKey && (e.shiftKey || px < 0)) stretch('y', times, clamp(py, 0, 1));
  else if (e.ctrlKey) stretch('x', times, clamp(px, 0, 1));
  else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) && view.x[1] - view.x[0] < 1) pan('x', e.deltaX / wide);
  else return;
  hide();
  e.preventDefault();
}

/* Two fingers: what is between them grows as they part, in time and in bytes, and moves as they move. */
function pinch(p, before, now) {
  const middle = (f, k) => (f[0][k] + f[1][k]) / 2, apart = (f, k) => Math.abs(f[0][k] - f[1][k]);
  const from = p.svg.getBoundingClientRect();
  const times = k => apart(before, k) > 40 ? clamp(apart(before, k) / Math.max(apart(now, k), 1), .5, 2) : 1;
  stretch('x', times(0), clamp((middle(now, 0) - from.left - LEFT) / wide, 0, 1));
  stretch('y', times(1), clamp(1 - (middle(now, 1) - from.top - TOP) / high, 0, 1));
  pan('x', (middle(before, 0) - middle(now, 0)) / wide);
  pan('y', (middle(now, 1) - middle(before, 1)) / high);
}

const fingers = new Map();
function lift(e) { fingers.delete(e.pointerId); }

function down(p, e) {
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
  if (fingers.size > 1 || e.button || e.shiftKey) return hide();
  point(p, e);
  tell_pointed(p, e);
}
function move(p, e) {
  const before = [...fingers.values()], held = fingers.has(e.pointerId) && e.buttons;
  if (!e.buttons) lift(e);
  if (held) fingers.set(e.pointerId, [e.clientX, e.clientY]);
  if (fingers.size === 2 && held) return pinch(p, before, [...fingers.values()]);
  if (!held || fingers.size > 2) return tell_pointed(p, e);
  if (e.buttons & 4 || e.shiftKey) {
    pan('x', (before[0][0] - e.clientX) / wide);
    pan('y', (e.clientY - before[0][1]) / high);
    return hide();
  }
  if (e.buttons & 1) point(p, e);
  tell_pointed(p, e);
}
function point(p, e) {
  lead = view.time ? p : lead;
  go(instruction(p, at_x(e.clientX - p.svg.getBoundingClientRect().left)));
}

function listen(p) {
  const two = e => e.touches.length > 1 && e.preventDefault();
  p.svg.addEventListener('mousedown', e => e.button === 1 && e.preventDefault());
  p.svg.addEventListener('pointerdown', e => down(p, e));
  p.svg.addEventListener('pointermove', e => move(p, e));
  p.svg.addEventListener('pointerleave', e => e.pointerType === 'touch' || hide());
  p.svg.addEventListener('wheel', e => wheel(p, e), { passive: false });
  for (const kind of ['touchstart', 'touchmove']) p.svg.addEventListener(kind, two, { passive: false });
}
addEventListener('pointerup', lift);
addEventListener('pointercancel', e => { lift(e); hide(); });

/* ---- keys and buttons ---- */

function toggle() {
  clearInterval(timer);
  const last = () => +slider.max, pause = Math.max(30, Math.min(400, 20000 / steps));
  timer = timer ? 0 : setInterval(() => at < last() ? go(at + 1) : toggle(), pause);
  if (timer && at === last()) go(0);
  play.textContent = timer ? 'Pause' : 'Play';
  for (const p of plans) p.now.setAttribute('aria-live', timer ? 'off' : 'polite');
}

/* The first plan's peak; from there the next plan's. */
function next_peak() {
  lead = plans[(plans.findIndex(p => p.peak === at && (!view.time || p === lead)) + 1) % plans.length];
  go(lead.peak);
}

const keys = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), PageDown: () => go(at + 10),
  PageUp: () => go(at - 10), Home: () => go(0), End: () => go(steps - 1), p: next_peak, ' ': toggle,
  v: () => switch_to({ kind: !view.kind }), t: () => switch_to({ time: !view.time }), Escape: hide,
  '+': () => zoom(1 / 1.5), '=': () => zoom(1 / 1.5), '-': () => zoom(1.5), 0: show_all,
  y: () => taller(1 / 1.5), Y: () => taller(1.5) };
const moves = { ArrowRight: ['x', .2], ArrowLeft: ['x', -.2], ArrowUp: ['y', .2], ArrowDown: ['y', -.2] };
document.addEventListener('keydown', e => {
  const pressed = e.target.tagName === 'BUTTON' || e.target.tagName === 'SUMMARY';
  const scrolls = e.target.closest?.('.live') && /Page|Home|End/.test(e.key);
  const key = e.key.length > 1 || e.key === 'Y' ? e.key : e.key.toLowerCase();
  const shifted = e.shiftKey && moves[e.key];
  const does = shifted ? () => pan(...shifted) : keys[key], other = e.ctrlKey || e.altKey || e.metaKey;
  if (!does || e.defaultPrevented || scrolls || (pressed && e.key === ' ') || other) return;
  does();
  e.preventDefault();
});

function build(p) {
  const main = document.getElementById('plans');
  const parts = `state ${size(p.state)} and slab ${size(p.slab)}`, long = `${duration(p.time)} ${p.clock}`;
  element(main, 'h2', {}, `${p.policy}: ${size(p.bytes)}, of them ${parts}; ` +
    `${count(p.lines.length, 'instruction')}, ${count(p.reruns, 'rerun')} of units, ${long}`);
  build_picture(p, main);
  p.now = element(main, 'div', { class: 'now', 'aria-live': 'polite' });
  p.details = element(main, 'details', { open: '' });
  p.summary = element(p.details, 'summary', {});
  build_table(p, element(p.details, 'div', { class: 'live', role: 'region', 'aria-label': 'Live buffers' }));
  p.details.addEventListener('toggle', show_tables);
  const why = element(main, 'details', {});
  element(why, 'summary', {}, 'Why the plan takes its bytes');
  element(why, 'pre', {}, p.why);
  listen(p);
}

function legend() {
  for (const k of layers) {
    const span = element(document.getElementById('legend'), 'span', k >= STATE ? { class: 'whole' } : {});
    element(element(span, 'svg', { class: 'swatch', 'aria-hidden': true }), 'rect',
      { class: 'k' + k, width: '100%', height: '100%' });
    span.append(kinds[k]);
  }
}

slider.addEventListener('input', () => go(+slider.value));
play.addEventListener('click', toggle);
peak.addEventListener('click', next_peak);
[() => switch_to({ kind: false }), () => switch_to({ kind: true }), () => switch_to({ time: false }),
  () => switch_to({ time: true }), keys['+'], keys['-'], keys.y, show_all]
  .forEach((does, k) => tools[k].addEventListener('click', does));
patterns();
legend();
document.getElementById('saved').textContent = saved();
plans.forEach(prepare);
plans.forEach(build);
switch_to({});
next_peak();
show_tables();
addEventListener('load', fit);
new ResizeObserver(fit).observe(document.getElementById('plans'));
