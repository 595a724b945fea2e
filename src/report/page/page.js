'use strict';
const plans = JSON.parse(document.getElementById('data').textContent);
const kinds = ['input', 'kept for backward', 'gone after forward', 'recomputed', 'activation gradient',
  'weight gradient', 'workspace', 'result'];
const words = { F: 'forward', R: 'forward again', B: 'backward', U: 'update', H: 'its gradient is ready',
  W: 'wait for its hook', O: 'copy to far memory', P: 'copy back', A: 'wait until its copy has arrived',
  M: 'move' };
const WIDE = 960, HIGH = 300, LEFT = 90, CURVE = 80, TOP = CURVE + 30, ROWS = 200;
const steps = Math.max(...plans.map(p => p.lines.length));
const most = Math.max(...plans.map(p => p.slab), 1);
const x = i => LEFT + WIDE * i / steps, y = bytes => TOP + HIGH * (1 - bytes / most);
const count = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
const bytes = n => count(n, 'byte');
const unit = [1, 1024, 1048576, 1073741824].filter((u, k) => !k || most >= u).pop();
const scale = n => +(n / unit).toPrecision(4) + ' ' + ['bytes', 'KiB', 'MiB', 'GiB'][Math.log2(unit) / 10];

function element(parent, tag, attributes, text) {
  const svg = tag === 'svg' || parent.namespaceURI === 'http://www.w3.org/2000/svg';
  const e = document.createElementNS(svg ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml', tag);
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
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
  p.buffers = p.buffers.map(([item, kind, first, last, at, size]) =>
    ({ item, kind, first, last, at, size, holds: [], reads: [] }));
  p.born = p.lines.map(() => []);
  p.dies = p.lines.map(() => []);
  p.over = p.lines.map(() => []);
  p.written = {};
  for (const b of p.buffers) { p.born[b.first].push(b); p.dies[b.last].push(b); }
  const live = [];
  p.lines = p.lines.map(([kind, name, where, size, seconds, workspace, uses], i) => {
    for (const b of p.born[i]) live.splice(place(live, b.at) + 1, 0, b);
    for (let k = 0; k < uses.length; k += 3) {
      const [item, mode, at] = uses.slice(k, k + 3), b = live[place(live, at)];
      if (!b || at >= b.at + b.size) continue;
      if ((mode !== WRITE && mode !== VIEW) && b.reads[b.reads.length - 1] !== i) b.reads.push(i);
      if (mode !== READ && !b.holds.some(h => h.item === item)) {
        const before = held(p, b, i - 1);
        b.holds.push({ item, at, since: i });
        const now = held(p, b, i);
        if (i > b.first) p.over[i].push({ b, item, gone: before.filter(k => !now.includes(k)) });
      }
      if (mode === WRITE || mode === VIEW) (p.written[item] = p.written[item] || []).push(i);
    }
    for (const b of p.dies[i]) live.splice(place(live, b.at), 1);
    return { kind, name, place: where, size, seconds, workspace };
  });
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

function read_next(p, b, i) {
  const next = b.reads.find(j => j > i), now = b.reads.includes(i) ? 'now' : '';
  return next === undefined ? now || 'nothing' : (now && 'now, then ') + line(p, next);
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

/* ---- drawing ---- */

function axes(svg, p) {
  for (let i = 0; i <= 4; i++) {
    const at = y(most * i / 4);
    element(svg, 'line', { class: 'grid', x1: LEFT, x2: LEFT + WIDE, y1: at, y2: at });
    element(svg, 'text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, scale(most * i / 4));
  }
  if (p.turn < 0) return;
  element(svg, 'line', { class: 'turn', x1: x(p.turn), x2: x(p.turn), y1: 14, y2: TOP + HIGH });
  const late = x(p.turn) > LEFT + WIDE - 110;
  element(svg, 'text', { x: x(p.turn) + (late ? -4 : 4), y: TOP - 4, 'text-anchor': late ? 'end' : 'start' },
    'backward begins');
}

function curve(svg, p) {
  const high = size => CURVE + 14 - CURVE * size / most;
  element(svg, 'text', { x: LEFT + 4, y: 12 }, 'live');
  for (const size of [0, most])
    element(svg, 'text', { x: LEFT - 6, y: high(size) + 4, 'text-anchor': 'end' }, scale(size));
  element(svg, 'path', { class: 'curve', d: 'M' + p.lines.map((l, i) =>
    `${x(i).toFixed(1)} ${high(l.size).toFixed(1)}H${x(i + 1).toFixed(1)}`).join('L') });
  element(svg, 'circle', { class: 'peak', r: 4, cx: x(p.peak + .5), cy: high(p.lines[p.peak].size) });
  element(svg, 'line', { class: 'grid', x1: LEFT, x2: LEFT + WIDE, y1: high(0), y2: high(0) });
}

function rectangles(svg, p) {
  const wide = b => Math.max(WIDE * (b.last - b.first + 1) / steps, .3).toFixed(2);
  p.buffers.forEach((b, k) => element(svg, 'rect', { class: 'k' + b.kind, 'data-b': k,
    x: x(b.first).toFixed(2), y: y(b.at + b.size).toFixed(2), width: wide(b),
    height: Math.max(HIGH * b.size / most, .3).toFixed(2) }));
  p.lines.forEach((l, i) => l.workspace && element(element(svg, 'rect', { class: 'k6', x: x(i),
    width: WIDE / steps, y: y(p.numbers + l.workspace), height: HIGH * l.workspace / most }),
  'title', {}, `workspace of ${line(p, i)}: ${bytes(l.workspace)}`));
}

function draw(p) {
  const main = document.getElementById('plans');
  element(main, 'h2', {}, `${p.policy}: ${bytes(p.bytes)}, ${bytes(p.slab)} of them the slab; ` +
    `${count(p.lines.length, 'instruction')}, ${count(p.reruns, 'rerun')} of units`);
  const label = `Memory over time and address: ${bytes(p.slab)} over ${count(p.lines.length, 'instruction')}. ` +
    'What is live at the cursor stands in the table below.';
  const svg = element(main, 'svg', { viewBox: `0 0 ${LEFT + WIDE + 10} ${TOP + HIGH + 24}`, role: 'img',
    'aria-label': label });
  axes(svg, p);
  curve(svg, p);
  element(svg, 'rect', { class: 'plot', x: LEFT, y: 0, width: WIDE, height: TOP + HIGH });
  rectangles(svg, p);
  p.cursor = element(svg, 'line', { class: 'cursor', y1: 4, y2: TOP + HIGH });
  element(svg, 'text', { x: LEFT, y: TOP + HIGH + 18 }, 'instructions, in order; up: address in the slab');
  p.now = element(main, 'div', { class: 'now', 'aria-live': 'polite' });
  const more = element(main, 'details', { open: '' });
  p.summary = element(more, 'summary', {});
  const region = { class: 'live', tabindex: 0, role: 'region', 'aria-label': 'Live buffers' };
  p.table = element(element(more, 'div', region), 'table', {});
  p.details = more;
  more.addEventListener('toggle', show_tables);
  const why = element(main, 'details', {});
  element(why, 'summary', {}, 'Why the plan takes its bytes');
  element(why, 'pre', {}, p.why);
  listen(svg, p);
}

/* ---- the cursor ---- */

let at = 0, timer = 0, resting = 0;
const [slider, play, tip] = ['at', 'play', 'tip'].map(id => document.getElementById(id));

function changes(p, i) {
  const over = p.over[i].map(o => `${name_of(p, [o.item])} (${bytes(p.items[o.item][1])}, ` +
    `${o.gone.length ? `over ${name_of(p, o.gone)}` : `in the buffer of ${name(p, o.b, i - 1)}`})`);
  const born = p.born[i].map(b => `${name(p, b, i)} (${bytes(b.size)})`);
  const dies = p.dies[i].map(b => `${name(p, b, i)} (${bytes(b.size)}; ${ending(p, b)})`);
  const last = i === p.lines.length - 1;
  element(p.now, 'p', {}, `Born: ${born.concat(over).join('; ') || 'nothing'}`);
  element(p.now, 'p', {}, `Free after it: ${last ? 'the step ends' : dies.join('; ') || 'nothing'}`);
}

function show_live(p, i) {
  const live = p.buffers.filter(b => b.first <= i && i <= b.last).sort((a, b) => b.at - a.at);
  p.summary.textContent = `Live now: ${count(live.length, 'buffer')}, top address first; ` +
    `each takes whole blocks of ${p.align} bytes`;
  p.table.textContent = '';
  if (!p.details.open) return;
  const head = element(p.table, 'tr', {});
  for (const text of ['tensor', 'what it is', 'bytes', 'address', 'since', 'read next'])
    element(head, 'th', { scope: 'col', class: ['bytes', 'address', 'since'].includes(text) ? 'n' : '' }, text);
  for (const b of live.slice(0, p.whole ? live.length : ROWS)) {
    const row = element(p.table, 'tr', {}), first = element(row, 'td', {});
    element(first, 'i', { class: 'k' + b.kind });
    first.append(name(p, b, i));
    element(row, 'td', {}, kinds[b.kind]);
    for (const n of [b.size, b.at, b.first + 1]) element(row, 'td', { class: 'n' }, n.toLocaleString('en'));
    element(row, 'td', {}, read_next(p, b, i));
  }
  if (p.whole || live.length <= ROWS) return;
  const more = element(element(element(p.table, 'tr', {}), 'td', { colspan: 6 }), 'button', { type: 'button' },
    `Show ${live.length - ROWS} more`);
  more.addEventListener('click', () => { p.whole = true; show_live(p, i); });
}

/* The tables are the slow part: they follow when the cursor rests. */
const shown = p => Math.min(at, p.lines.length - 1);
function show_tables() { plans.forEach(p => show_live(p, shown(p))); }

function show(p) {
  const i = shown(p), l = p.lines[i];
  p.cursor.setAttribute('x1', x(i + .5));
  p.cursor.setAttribute('x2', x(i + .5));
  p.now.textContent = '';
  const text = element(p.now, 'p', {}, `Instruction ${i + 1} of ${p.lines.length}: `);
  element(text, 'b', {}, `${l.kind} ${l.name}`);
  text.append(`, ${words[l.kind] || l.kind}${l.place ? ', ' + l.place : ''}. Live: ${bytes(l.size)}` +
    `${i === p.peak ? ', the peak' : ''}${l.workspace ? `, workspace ${bytes(l.workspace)}` : ''}` +
    `${l.seconds ? `. Measured: ${(1e3 * l.seconds).toPrecision(3)} ms` : ''}.`);
  changes(p, i);
}

function go(to) {
  at = Math.max(0, Math.min(steps - 1, to));
  slider.value = at;
  slider.setAttribute('aria-valuetext', `instruction ${at + 1} of ${steps}`);
  plans.forEach(show);
  clearTimeout(resting);
  resting = setTimeout(show_tables, 150);
}

function listen(svg, p) {
  const instruction = e => Math.floor(((e.clientX - svg.getBoundingClientRect().left) *
    (LEFT + WIDE + 10) / svg.getBoundingClientRect().width - LEFT) * steps / WIDE);
  svg.addEventListener('pointerdown', e => go(instruction(e)));
  svg.addEventListener('pointermove', e => {
    if (e.buttons & 1) go(instruction(e));
    const b = p.buffers[e.target.dataset.b];
    tip.style.display = b ? 'block' : 'none';
    for (const r of svg.querySelectorAll('.hot')) r.classList.remove('hot');
    if (!b) return;
    e.target.classList.add('hot');
    tip.textContent = tip_text(p, b, Math.min(Math.max(instruction(e), 0), p.lines.length - 1));
    tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
  });
  svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
}

function toggle() {
  clearInterval(timer);
  const pause = Math.max(30, Math.min(400, 20000 / steps));
  timer = timer ? 0 : setInterval(() => at < steps - 1 ? go(at + 1) : toggle(), pause);
  if (timer && at === steps - 1) go(0);
  play.textContent = timer ? 'Pause' : 'Play';
  for (const p of plans) p.now.setAttribute('aria-live', timer ? 'off' : 'polite');
}

/* The first plan's peak; from there the next plan's. */
function next_peak() { go(plans[(plans.findIndex(p => p.peak === at) + 1) % plans.length].peak); }

const keys = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), PageDown: () => go(at + 10),
  PageUp: () => go(at - 10), Home: () => go(0), End: () => go(steps - 1), p: next_peak,
  ' ': toggle };
document.addEventListener('keydown', e => {
  const pressed = e.target.tagName === 'BUTTON' || e.target.tagName === 'SUMMARY';
  const scrolls = e.target.className === 'live' && /Page|Home|End/.test(e.key);
  const does = keys[e.key === 'P' ? 'p' : e.key];
  if (!does || scrolls || (pressed && e.key === ' ') || e.ctrlKey || e.altKey || e.metaKey) return;
  does();
  e.preventDefault();
});
slider.max = steps - 1;
slider.addEventListener('input', () => go(+slider.value));
play.addEventListener('click', toggle);
document.getElementById('peak').addEventListener('click', next_peak);
kinds.forEach((kind, k) => {
  const span = element(document.getElementById('legend'), 'span', {});
  element(span, 'i', { class: 'k' + k });
  span.append(kind);
});
plans.forEach(prepare);
plans.forEach(draw);
next_peak();
show_tables();
