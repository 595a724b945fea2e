'use strict';
/* What the page shows of the answers: words, figures, the row of layers, memory over time, one instruction. */

/* ---- words ---- */

const count = n => n.toLocaleString('en');
const escaped = s => s.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
function size(n) {
  const k = n < 1024 ? 0 : n < 1048576 ? 1 : n < 1073741824 ? 2 : 3;
  return `${k ? +(n / 1024 ** k).toPrecision(4) : n} ${['bytes', 'KiB', 'MiB', 'GiB'][k]}`;
}
function time(s) {
  const [unit, name] = s < 1e-3 ? [1e-6, 'µs'] : s < 1 ? [1e-3, 'ms'] : [1, 's'];
  return `${(s / unit).toPrecision(4)} ${name}`;
}
const letters = { F: 'forward', R: 'forward again', B: 'backward', U: 'update of a weight', M: 'move' };
const kinds = ['input', 'kept for backward', 'gone after forward', 'recomputed', 'activation gradient',
  'weight gradient', 'workspace', 'result'];
const parts = [['state', 'state', 'state: weights, statistics'], ['input', 'k0', kinds[0]], ['kept', 'k1', kinds[1]],
  ['recomputed', 'k3', kinds[3]], ['activation_gradients', 'k4', 'activation gradients'],
  ['weight_gradients', 'k5', 'weight gradients'], ['workspace', 'k6', kinds[6]], ['gaps', 'gaps', 'gaps']];
const layer_name = i => i < 0 || !all || !all.layers[i] ? '' : all.layers[i][0];
const policy_name = () => get('policy').selectedOptions[0].textContent.replace(/:.*/, '');

/* ---- drawing ---- */

const rect = (k, x, y, w, h) => `<rect class="${k}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" ` +
  `width="${Math.max(w, .4).toFixed(1)}" height="${Math.max(h, .4).toFixed(1)}"/>`;
const line = (k, x, y, x2, y2) => `<line class="${k}" x1="${x}" y1="${y}" x2="${x2}" y2="${y2}"/>`;
const words = (k, x, y, t) => `<text class="${k}" x="${x}" y="${y}">${escaped(t)}</text>`;
const swatch = k => `<svg class="swatch" viewBox="0 0 22 14" aria-hidden="true">${rect(k, 0, 0, 22, 14)}</svg>`;

/* Diagonal lines: made again. Horizontal lines: gradients. Dots: what is always there. */
function patterns() {
  const p = (id, w, h, inside) => `<pattern id="${id}" width="${w}" height="${h}" patternUnits="userSpaceOnUse">` +
    `<rect width="${w}" height="${h}"/>${inside}</pattern>`;
  return '<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>' +
    p('p3', 6, 6, '<path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" style="stroke-width:1.6"/>') +
    p('p4', 6, 5, '<path d="M0 4H6" style="stroke-width:1.2"/>') + p('p5', 6, 8, '<path d="M0 7H6"/>') +
    p('p8', 6, 6, '<circle cx="2" cy="2" r="1.6"/>') + '</defs></svg>';
}
function paper(id, height) {
  const svg = get(id), width = Math.max(svg.getBoundingClientRect().width, 200);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  return [svg, width];
}

/* The row: a bar is a layer, its height what keep-all holds of it for backward. */
const HIGH = 130, TOP = 22, FOOT = 62, SIDE = 12;
let slot = 1;
const cut_x = c => SIDE + slot * c;

function bars(high) {
  const shown = hidden ? all : plan;
  let out = '';
  all.layers.forEach(([name, bytes], i) => {
    const x = cut_x(i) + Math.min(2, slot / 6), w = slot - 2 * Math.min(2, slot / 6), y = TOP + HIGH;
    const [, kept, runs] = shown ? shown.layers[i] : ['', 0, 1];
    out += `<g><title>${escaped(name)}: ${count(kept)} of ${count(bytes)} bytes kept` +
      `${runs > 1 ? `, forward runs ${runs} times` : ''}</title>`;
    out += rect(runs > 1 ? 'k3' : 'frame', x, y - high(bytes), w, high(bytes));
    if (kept) out += rect('k1', x, y - high(kept), w, high(kept));
    const text = slot > 54 ? name : String(i + 1), labelled = slot > 20 || i === 0 || i % 5 === 4;
    out += (labelled ? words('dim middle', cut_x(i + .5), y + 15, text) : '') + '</g>';
  });
  return out;
}
function draw_row() {
  const [svg, width] = paper('row', TOP + HIGH + FOOT);
  if (!all) { svg.innerHTML = ''; return; }
  const n = all.layers.length, most = Math.max(1, ...all.layers.map(l => l[1]));
  slot = (width - 2 * SIDE) / n;
  const ends = [0, ...state.cuts, n];
  const shaded = state.policy === 'segments';
  let out = ends.slice(1).map((end, s) => s % 2 || !shaded ? '' :
    `<rect x="${cut_x(ends[s])}" y="${TOP - 8}" width="${cut_x(end) - cut_x(ends[s])}" height="${HIGH + 8}" ` +
    'style="fill:var(--faint)"/>').join('');
  out += line('base', SIDE, TOP + HIGH, width - SIDE, TOP + HIGH) + bars(b => HIGH * b / most);
  out += words('dim', SIDE, 10, `highest bar: ${size(most)} (${count(most)} bytes)`);
  out += '<g id="here"></g>';
  if (!svg.querySelector('.drawn')) svg.innerHTML = '<g class="drawn"></g><g class="cuts"></g>';
  svg.querySelector('.drawn').innerHTML = out;
  svg.classList.toggle('pale', state.policy !== 'segments');
  draw_cuts(svg.querySelector('.cuts'));
  const shown = [['k1', 'kept for backward'], ['k3', 'forgotten, runs again'],
    ['frame', 'keep all holds it, this plan does not']];
  get('row_words').innerHTML = shown.map(([k, text]) => `<span>${swatch(k)}${text}</span>`).join(' ');
}

/* The cuts' elements stay, so that one keeps the focus and the pointer while it moves. */
function draw_cuts(g) {
  while (g.children.length > state.cuts.length) g.lastChild.remove();
  while (g.children.length < state.cuts.length) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', 'g');
    const y = TOP + HIGH + 38;
    e.setAttribute('class', 'cut');
    e.setAttribute('role', 'slider');
    e.setAttribute('tabindex', '0');
    e.innerHTML = `<rect class="hit" x="-13" y="${TOP - 10}" width="26" height="${HIGH + 70}"/>` +
      line('', 0, TOP - 10, 0, y) + `<circle cx="0" cy="${y}" r="11"/>` +
      `<path d="M-3 ${y - 4}V${y + 4}M3 ${y - 4}V${y + 4}"/>`;
    g.append(e);
  }
  state.cuts.forEach((c, i) => {
    const e = g.children[i];
    e.setAttribute('transform', `translate(${cut_x(c)} 0)`);
    e.setAttribute('aria-label', `Cut ${i + 1} of ${state.cuts.length}`);
    e.setAttribute('aria-valuemin', 1);
    e.setAttribute('aria-valuemax', all.layers.length - 1);
    e.setAttribute('aria-valuenow', c);
    e.setAttribute('aria-valuetext', `between ${layer_name(c - 1)} and ${layer_name(c)}`);
  });
}

/* Two plans and marks on one scale: [name, answer], in bytes. */
function draw_bytes() {
  const rows = [['keep all', all], [`yours: ${policy_name()}`, hidden ? null : plan]];
  const [svg, width] = paper('bytes_bars', 118), most = Math.max(1, ...rows.map(r => r[1] ? r[1].bytes : 0));
  let out = '';
  rows.forEach(([name, a], i) => {
    const y = 16 + 48 * i;
    let x = 0;
    out += words('', 0, y - 4, a ? `${name}: ${size(a.bytes)}, ${count(a.bytes)} bytes` : `${name}: ?`);
    out += rect('frame', 0, y, width, 22);
    for (const [key, k] of a ? parts : []) {
      const w = width * a.split[key] / most;
      if (w) out += rect(k, x, y, w, 22);
      x += w;
    }
  });
  if (least) {
    const x = width * least / most;
    for (const y of [14, 62]) out += line('mark', x, y, x, y + 27);
    out += words(x > width / 2 ? 'dim end' : 'dim', x, 106, `least found: ${size(least)}`);
  }
  svg.innerHTML = out;
  svg.setAttribute('aria-label', 'Bytes at the peak, keep all and this plan, on one scale');
  figure('bytes', a => size(a.bytes), a => `${count(a.bytes)} bytes` +
    `${a.tensors ? `, ${a.tensors} tensors of ${count(a.tensor)}` : ''}; keep all ${count(all.bytes)}` +
    `${all.tensors ? ` (${all.tensors})` : ''}; least found ${least ? count(least) : '?'}`);
}
function draw_seconds() {
  const mine = hidden ? null : plan, better = mine && mine.planner_seconds;
  const rows = [['keep all', all && all.seconds], [`yours: ${policy_name()}`, mine && mine.seconds]];
  if (better) rows.push(['the planner, in your bytes', better]);
  const [svg, width] = paper('seconds_bars', 118), most = Math.max(1e-30, ...rows.map(r => r[1] || 0));
  let out = '';
  rows.forEach(([name, s], i) => {
    const y = 14 + 32 * i;
    out += words('', 0, y - 3, s ? `${name}: ${time(s)}` : `${name}: ?`) + rect('frame', 0, y, width, 13);
    if (s) out += rect('k2', 0, y, width * s / most, 13);
  });
  if (mine && mine.bound_seconds) {
    const x = width * mine.bound_seconds / most;
    out += line('mark', x, 10, x, 97) + words(x > width / 2 ? 'dim end' : 'dim', x, 112, 'no schedule is faster');
  }
  svg.innerHTML = out;
  svg.setAttribute('aria-label', 'Seconds of a step, keep all and this plan, on one scale');
  figure('seconds', a => time(a.seconds), a => `${a.of_keep_all.toFixed(4)} times keep all; ` + (a.bound_seconds ?
    `in ${count(a.bytes)} bytes no schedule takes less than ${time(a.bound_seconds)}` : 'the lower bound follows'));
}
function figure(id, big, small) {
  const a = hidden ? null : plan;
  get(id).textContent = a ? big(a) : '?';
  get(`${id}_words`).textContent = a ? small(a) : hidden ? 'after your prediction' : '';
}
function draw_split() {
  const mine = hidden ? null : plan;
  const cell = a => a ? n => size(n) + (n < 1024 ? '' : `<i>, </i><span>${count(n)}</span>`) : () => '?';
  get('split').innerHTML = '<tr><th scope="col">at the peak</th><th scope="col" class="n">keep all, bytes</th>' +
    '<th scope="col" class="n">yours, bytes</th></tr>' +
    parts.map(([key, k, name]) => `<tr><td>${swatch(k)}${name}</td>` +
    `<td class="n">${cell(all)(all && all.split[key])}</td>` +
    `<td class="n">${cell(mine)(mine && mine.split[key])}</td></tr>`).join('');
}

/* Memory over time: buffers at their addresses, the state under them. */
const PLOT = 170, GAP = 44;
function plot(name, a, top, left, width, steps, most) {
  const x = i => left + width * i / steps, y = b => top + PLOT * (1 - b / most), state_bytes = a.split.state;
  const box = (k, i, n, at, b) => rect(k, x(i), y(state_bytes + at + b), width * n / steps, PLOT * b / most);
  let out = words('', left, top - 5, `${name}: ${size(a.bytes)}, ${count(a.lines.length)} instructions`);
  for (const share of [0, .5, 1]) {
    out += line('grid', left, y(most * share), left + width, y(most * share));
    if (share !== .5) out += words('dim end', left - 5, y(most * share) + 4, size(most * share));
  }
  out += rect('state', left, y(state_bytes), x(a.lines.length) - left, PLOT * state_bytes / most);
  for (const [kind, first, last, at, bytes] of a.buffers) out += box(`k${kind}`, first, last - first + 1, at, bytes);
  a.lines.forEach((l, i) => { if (l[4]) out += box('k6', i, 1, a.front, l[4]); });
  out += line('dash', x(a.turn), top, x(a.turn), top + PLOT) + line('dash', left, y(a.bytes), left + width, y(a.bytes));
  const late = a.turn > steps * .7;
  return out + words(late ? 'dim end' : 'dim', x(a.turn) + (late ? -4 : 4), top + PLOT + 13, 'backward begins');
}
let scale = null;
function draw_memory() {
  const [svg, width] = paper('memory', 2 * PLOT + GAP + 88), mine = hidden ? null : plan, left = 72;
  if (!all) { svg.innerHTML = ''; return; }
  const shown = [['keep all', all], [`yours: ${policy_name()}`, mine]].filter(p => p[1]);
  const steps = Math.max(...shown.map(p => p[1].lines.length)), most = Math.max(...shown.map(p => p[1].bytes));
  scale = { left, width: width - left - 4, steps };
  let out = shown.map(([name, a], i) => plot(name, a, 18 + i * (PLOT + GAP), left, scale.width, steps, most)).join('');
  if (!mine) out += words('', left, PLOT + GAP + 30, hidden ? 'Yours follows when you have predicted it.' : '');
  svg.innerHTML = `${out}<g id="cursor"></g>${legend(width)}`;
  svg.setAttribute('aria-label', shown.map(([name, a]) => `${name}: at most ${count(a.bytes)} bytes in ` +
    `${a.lines.length} instructions`).join('; '));
}
function legend(width) {
  let x = 0, y = 2 * PLOT + GAP + 38, out = '';
  kinds.concat('state').forEach((name, k) => {
    const wide = 26 + 6.4 * name.length;
    if (x + wide > width) { x = 0; y += 18; }
    out += rect(k < 8 ? `k${k}` : 'state', x, y, 16, 12) + words('', x + 20, y + 10, name);
    x += wide + 8;
  });
  return out;
}

/* ---- one instruction ---- */

/* What a buffer holds at an instruction: [name, layer] of each. */
function held([, , , , , name, layer, holds], i) {
  const now = [];
  for (let k = 0; k < holds.length; k += 4) {
    if (holds[k] <= i && i <= holds[k + 1]) now.push([holds[k + 2], holds[k + 3]]);
  }
  return now.length ? now : [[name, layer]];
}
function draw_step() {
  const a = hidden ? null : plan, i = state.at;
  for (const id of ['now', 'lines', 'live']) if (!a) get(id).textContent = '';
  if (!a) return;
  const [letter, name, layer, live, workspace] = a.lines[i];
  get('at').value = i;
  get('at').setAttribute('aria-valuetext', `${i + 1} of ${a.lines.length}`);
  const buffers = a.buffers.filter(b => b[1] <= i && i <= b[2]).sort((p, q) => q[3] - p[3]);
  get('now').innerHTML = `Instruction ${i + 1} of ${a.lines.length}: <b>${letter} ${escaped(name)}</b>, ` +
    `${letters[letter] || letter}${layer < 0 ? '' : `, ${escaped(layer_name(layer))}`}. Live: ${size(live)}, ` +
    `${count(live)} bytes in ${buffers.length} buffers${workspace ? `, workspace ${count(workspace)} bytes` : ''}` +
    `${i === a.peak ? '; this is the peak' : ''}.`;
  const first = Math.max(0, Math.min(i - 4, a.lines.length - 11));
  get('lines').innerHTML = a.lines.slice(first, first + 11).map((l, k) => `<li${first + k === i ? ' class="here" ' +
    'aria-current="step"' : ''}>${first + k + 1} ${l[0]} ${escaped(l[1])}</li>`).join('');
  get('live').innerHTML = '<tr><th scope="col">live, top address first</th><th scope="col">layer</th>' +
    '<th scope="col" class="n">bytes</th></tr>' + buffers.map(b => {
    const now = held(b, i), names = now.map(h => escaped(h[0])).join(', ');
    return `<tr><td>${swatch(`k${b[0]}`)}${names}, ${kinds[b[0]]}</td><td>${escaped(layer_name(now[0][1]))}</td>` +
      `<td class="n">${count(b[4])}</td></tr>`;
  }).join('');
  const x = scale.left + scale.width * (i + .5) / scale.steps;
  get('cursor').innerHTML = line('mark', x, PLOT + GAP + 18, x, 2 * PLOT + GAP + 18);
  get('here').innerHTML = layer < 0 ? '' : rect('mark', cut_x(layer), TOP - 4, slot, HIGH + 4) +
    words('middle', cut_x(layer + .5), TOP - 9, letter);
}

function draw() {
  get('row').classList.toggle('wait', hidden);
  draw_row();
  draw_bytes();
  draw_seconds();
  draw_split();
  draw_memory();
  draw_step();
  get('why').textContent = plan && !hidden ? plan.why : '';
  verdict();
}
