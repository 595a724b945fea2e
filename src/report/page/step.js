'use strict';
/* ---- what a step is: the page's JSON, made ready, and what is said of it ---- */

const plans = JSON.parse(document.getElementById('data').textContent);
const kinds = ['input', 'kept for backward', 'gone after forward', 'recomputed', 'activation gradient',
  'weight gradient', 'workspace', 'result', 'state', 'gaps'];
const WORKSPACE = 6, STATE = 8, GAPS = 9;
/* From the ground up, and in the legend: neighbours are dark and medium in turn. */
const layers = [STATE, 1, 3, 4, 5, WORKSPACE, 2, 7, 0, GAPS];
const words = { F: 'forward', R: 'forward again', B: 'backward', U: 'update', H: 'its gradient is ready',
  W: 'wait for its hook', O: 'copy to far memory', P: 'copy back', A: 'wait until its copy has arrived',
  M: 'move' };
const steps = Math.max(...plans.map(p => p.lines.length));
const clamp = (n, low, high) => Math.max(low, Math.min(high, n));

const count = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
const bytes = n => count(n, 'byte');
const units = [[1, 'bytes'], [2 ** 10, 'KiB'], [2 ** 20, 'MiB'], [2 ** 30, 'GiB']];
const unit_of = (n, all) => all.filter((u, k) => !k || n >= u[0]).pop();
const digits = (n, most, least = 0) => n >= 1e7 ? n.toPrecision(3).replace(/\.?0*e\+/, 'e')
  : n.toLocaleString('en', { minimumFractionDigits: least, maximumFractionDigits: most });
function size(n) {
  const [one, word] = unit_of(n, units);
  const points = word === 'GiB' ? 2 : 1;
  return one > 1 ? `${digits(n / one, points, points)} ${word}` : bytes(n);
}
const clocks = [[1e-9, 'ns'], [1e-6, '\u00b5s'], [1e-3, 'ms'], [1, 's']];
function duration(seconds) {
  const [one, word] = unit_of(seconds, clocks);
  return `${digits(+(seconds / one).toPrecision(3), 3)} ${word}`;
}

const READ = 0, WRITE = 1, VIEW = 3;

/* The place in live, which is in order of addresses, of the last buffer that begins at most there. */
function place(live, at) {
  let low = 0, high = live.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (live[middle].at <= at) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/* Finds the buffers that each instruction reads and writes: those that are live and hold its addresses. */
function prepare(p) {
  p.buffers = p.buffers.map(([item, kind, first, last, at, size], index) =>
    ({ index, item, kind, first, last, at, size, holds: [], reads: [] }));
  p.born = p.lines.map(() => []);
  p.dies = p.lines.map(() => []);
  p.over = p.lines.map(() => []);
  p.written = {};
  for (const b of p.buffers) { p.born[b.first].push(b); p.dies[b.last].push(b); }
  const live = [];
  p.lines = p.lines.map(([kind, name, where, size, seconds, workspace, uses, planned, begin, end], i) => {
    for (const b of p.born[i]) live.splice(place(live, b.at) + 1, 0, b);
    for (let k = 0; k < uses.length; k += 3) use(p, live, i, ...uses.slice(k, k + 3));
    const highest = live[live.length - 1];
    const top = Math.max(p.numbers + workspace, highest ? highest.at + highest.size : 0);
    for (const b of p.dies[i]) live.splice(place(live, b.at), 1);
    return { kind, name, place: where, size, seconds, workspace, planned, begin, end, top };
  });
  stack(p);
  clock(p);
}

function use(p, live, i, item, mode, at) {
  const b = live[place(live, at)], writes = mode === WRITE || mode === VIEW;
  if (!b || at >= b.at + b.size) return;
  if (!writes && b.reads[b.reads.length - 1] !== i) b.reads.push(i);
  if (mode !== READ && !b.holds.some(h => h.item === item)) {
    const before = held(p, b, i - 1);
    b.holds.push({ item, at, since: i });
    const now = held(p, b, i);
    if (i > b.first) p.over[i].push({ b, item, gone: before.filter(k => !now.includes(k)) });
  }
  if (writes) (p.written[item] = p.written[item] || []).push(i);
}

/* p.sums[i]: bytes of each kind at an instruction. What lies below the top address and is of no kind is gaps. */
function stack(p) {
  const sum = kinds.map(() => 0);
  p.sums = p.lines.map((l, i) => {
    for (const b of p.born[i]) sum[b.kind] += b.size;
    const now = sum.slice();
    now[WORKSPACE] += l.workspace;
    now[GAPS] = l.top - now.reduce((a, n) => a + n, 0);
    now[STATE] = p.state;
    for (const b of p.dies[i]) sum[b.kind] -= b.size;
    return now;
  });
}

/* p.start[i]: when the step comes to an instruction, which is in order even where copies begin late. */
function clock(p) {
  p.time = Math.max(...p.lines.map(l => l.end), 1e-9);
  p.start = p.lines.map(l => l.begin).concat(p.time);
  for (let i = p.lines.length - 1; i >= 0; i--) p.start[i] = Math.min(p.start[i], p.start[i + 1]);
  const take = p.lines.filter(l => l.planned > 0 || l.seconds > 0);
  const measured = take.filter(l => l.seconds > 0).length;
  p.measured = measured && measured === take.length;
  p.clock = p.measured ? 'measured' : !measured ? 'planned'
    : `measured for ${measured} of ${take.length} instructions, else planned`;
}

/* What a buffer holds at an instruction. Ops work in place; a concat's parts lie in its buffer before it runs. */
function held(p, b, i) {
  let parts = [];
  for (const h of b.holds)
    if (h.since <= i) parts = parts.filter(o => o.at !== h.at && p.items[h.item][1] < b.size).concat(h);
  return parts.length ? parts.map(h => h.item) : [b.item];
}
const name_of = (p, items) => items.map(k => p.items[k][0]).join(' and ');
const name = (p, b, i) => name_of(p, held(p, b, i));
const line = (p, i) => `${i + 1} (${p.lines[i].kind} ${p.lines[i].name})`;

/* Why a buffer's bytes may be used for something else after its last instruction. */
function ending(p, b) {
  const items = held(p, b, b.last), made = items.map(k => p.written[k] || []);
  if (p.lines[b.last].kind === 'M' && made.some(m => m.includes(b.last))) return `moves: ${line(p, b.last)}`;
  const next = Math.min(...made.map(m => m.find(i => i > b.last) ?? Infinity));
  if (next < Infinity && p.lines[next].kind === 'R') return `will be run again: ${line(p, next)}`;
  if (next < Infinity && p.lines[next].kind === 'P') return `is in far memory, comes back: ${line(p, next)}`;
  return b.last === p.lines.length - 1 ? 'needed until the end of the step' : 'no later instruction reads it';
}

const next_reader = (b, i) => b.reads.find(j => j > i) ?? Infinity;
function read_next(p, b, i) {
  const next = next_reader(b, i), now = b.reads.includes(i) ? 'now' : '';
  return next === Infinity ? now || 'nothing' : (now && 'now, then ') + line(p, next);
}

function tip_text(p, b, i) {
  const born = p.lines[b.first];
  const now = held(p, b, i), others = b.holds.filter(h => !now.includes(h.item)).map(h => p.items[h.item][0]);
  return `${name(p, b, i)}\n` +
    `${others.length ? `the same bytes hold at other times: ${others.join(', ')}\n` : ''}` +
    `${kinds[b.kind]}, ${bytes(b.size)} at ${b.at.toLocaleString('en')}\n` +
    `from ${b.kind ? line(p, b.first) + (born.place ? ', ' + born.place : '') : 'the start'} ` +
    `to ${line(p, b.last)}\n` +
    `read by ${b.reads.length ? b.reads.map(j => line(p, j)).slice(0, 6).join(', ') : 'nothing in the step'}` +
    `${b.reads.length > 6 ? ` and ${b.reads.length - 6} more` : ''}\n` +
    `read next: ${read_next(p, b, i)}\nafter that: ${ending(p, b)}`;
}
const workspace_text = (p, i) => `workspace of ${line(p, i)}\n${bytes(p.lines[i].workspace)} at ${p.numbers}`;
const kind_text = (p, kind, i) =>
  `${kinds[kind]}\n${bytes(p.sums[i][kind])} of ${bytes(p.state + p.lines[i].top)}\n` +
  `at instruction ${line(p, i)}`;

/* What the first plan saves against the second. Measured times are compared only where both have them. */
function saved() {
  if (plans.length < 2) return '';
  const [a, b] = plans, percent = 100 * (a.bytes / b.bytes - 1), both = a.measured && b.measured;
  const sign = percent > 0 ? '+' : '\u2212';
  const time = both ? a.time / b.time : a.seconds / b.seconds;
  return `${b.policy} \u2192 ${a.policy}: ${size(b.bytes)} \u2192 ${size(a.bytes)} at the peak ` +
    `(${sign}${Math.abs(percent).toFixed(1)} %)` +
    (time > 0 && time < Infinity ? `, time \u00d7 ${time.toFixed(2)} (${both ? 'measured' : 'planned'})` : '');
}
