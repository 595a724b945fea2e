
/* All figures are the library's: play() of playground.c answers a request in JSON. Here they are asked for, formatted
   and drawn. */
const get = id => document.getElementById(id);
const state = { network: 'chain', layers: 36, policy: 'segments', cuts: [18], budget: 0, at: 0, guess: '' };
const asked = new Set();                /* networks that a prediction was asked for */
let all = null, plan = null, least = 0; /* answers: keep all, the plan that is shown (null: not yet), the least bytes */
let hidden = false;                     /* the plan's figures wait for a prediction */

/* ---- the library ---- */

/* Makes play() of a module's bytes; runs in the worker, or here where there is none. It writes to no file. */
function load(bytes) {
  const module = new WebAssembly.Module(bytes), nothing = {};
  for (const i of WebAssembly.Module.imports(module)) (nothing[i.module] ??= {})[i.name] = () => 0;
  const c = new WebAssembly.Instance(module, nothing).exports, room = 65536;
  c._initialize();
  return text => {
    const request = new TextEncoder().encode(text).slice(0, room - 1), at = c.play_room();
    new Uint8Array(c.memory.buffer, at, room).set(request);
    new Uint8Array(c.memory.buffer)[at + request.length] = 0;
    const answer = new Uint8Array(c.memory.buffer, c.play(at));
    return new TextDecoder().decode(answer.subarray(0, answer.indexOf(0)));
  };
}
function serve() {
  let play;
  onmessage = e => {
    if (e.data.bytes) play = load(e.data.bytes);
    else postMessage(play(e.data.text));
  };
}

const waiting = new Map();              /* what it is for -> [request, what to do with the answer]; the newest counts */
let running = null, began = 0, worker = null, here = null;

function trouble(text) {
  get('trouble').hidden = false;
  get('trouble').textContent = text;
}
function begin() {
  if (typeof WebAssembly !== 'object') {
    return trouble('This page needs WebAssembly, which this browser lacks or refuses.');
  }
  const bytes = Uint8Array.from(atob(get('wasm').textContent), c => c.charCodeAt(0));
  const text = `'use strict';${load};(${serve})();`;
  const alone = () => {
    worker = null;
    try { here = load(bytes); } catch (e) { return trouble(`WebAssembly was refused here: ${e.message}`); }
    if (running) answer_here();
  };
  try {
    worker = new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
    worker.onmessage = e => answered(e.data);
    worker.onerror = e => here ? 0 : (e.preventDefault(), alone());
    worker.postMessage({ bytes });
  } catch (e) { alone(); }
}
function ask(what, request, then) {
  waiting.set(what, [request, then]);
  pump();
}
function pump() {
  if (running || !waiting.size || !(worker || here)) return;
  running = waiting.entries().next().value;
  waiting.delete(running[0]);
  began = performance.now();
  if (worker) worker.postMessage({ text: running[1][0] });
  else answer_here();
}
function answer_here() {
  let text;
  try { text = here(running[1][0]); } catch (e) { return trouble(`The page's program stopped: ${e.message}`); }
  answered(text);
}
function answered(text) {
  const then = running[1][1];
  running = null;
  then(JSON.parse(text), text, performance.now() - began);
  pump();
}

/* ---- requests ---- */

function request(policy, more) {
  const words = [`network=${state.network}`];
  if (state.network === 'chain') words.push(`layers=${state.layers}`);
  words.push(`policy=${policy}`);
  if (policy === 'segments' && state.cuts.length) words.push(`cuts=${state.cuts}`);
  if (policy === 'uniform') words.push(`segments=${state.cuts.length + 1}`);
  if (policy === 'budget') words.push(`budget=${state.budget}`);
  words.push(...more);
  const lines = get('graph').value.replaceAll('\r', '').replaceAll('\\', '/').replaceAll('\n', '\\n');
  if (state.network === 'graph') words.push(`graph=${lines}`);
  return words.join(' ');
}

/* A network that is new here: keep all, the least, then the plan. */
let turns = 0;                          /* of networks: an answer for an earlier one comes too late */
function renew() {
  const turn = ++turns;
  all = plan = null;
  least = 0;
  hidden = false;
  state.guess = '';
  get('ask').hidden = true;
  ask('all', request('keep_all', []), a => {
    if (turn !== turns) return;
    if (!a.ok) return show(a);
    all = a;
    state.cuts = state.cuts.filter(c => c < a.layers.length);
    if (!state.cuts.length && a.layers.length > 1) state.cuts = [a.layers.length >> 1];
    ask('least', request('budget', []).replace(/budget=\d+/, 'budget=1'), b => {
      if (turn !== turns) return;
      least = b.least || 0;
      state.budget = state.budget || all.bytes;
      budget_range();
      refresh();
    });
  });
}

/* What to do where an answer takes long: first without the bound. */
let rest = 0, slow = false, changed = 0;
function refresh() {
  const more = state.guess ? [`guess=${state.guess}`] : [];
  changed = performance.now();
  clearTimeout(rest);
  if (!all) return renew();
  const turn = turns, fresh = does => (a, text, ms) => { if (turn === turns) does(a, text, ms); };
  const bound = () => ask('plan', request(state.policy, more.concat('more=1')), fresh(show));
  if (!slow) return bound();
  ask('plan', request(state.policy, more), fresh(a => show(a, '', 0)));
  rest = setTimeout(bound, 250);
}

function show(a, text, ms) {
  if (ms) slow = ms > 45;
  get('error').hidden = a.ok;
  get('least').hidden = a.ok || !a.least;
  if (!a.ok) {
    get('error').textContent = a.error;
    if (a.least) least = a.least;
  }
  plan = a.ok ? a : null;
  state.at = plan ? plan.peak : 0;
  get('at').max = plan ? plan.lines.length - 1 : 0;
  draw();
  get('spent').textContent = ms ? `The last answer took ${ms.toFixed(1)} ms, and ` +
    `${(performance.now() - changed).toFixed(1)} ms passed from the change to the drawing.` : get('spent').textContent;
}

/* ---- cuts ---- */

/* The first change of a network's cuts asks for a prediction, and its figures wait. */
function cuts_changed() {
  state.policy = get('policy').value = 'segments';
  if (!asked.has(state.network) && !hidden) {
    hidden = true;
    get('ask').hidden = false;
    get('ask_all').textContent = `(Keep all takes ${count(all.bytes)} bytes` +
      `${all.tensors ? `, ${all.tensors} tensors` : ''}.)`;
    const units = all.tensors ? ['tensors', 'bytes', 'KiB'] : ['MiB', 'KiB', 'bytes'];
    get('guess_unit').innerHTML = units.map(u => `<option>${u}</option>`).join('');
  } else if (!hidden) state.guess = '';
  policy_changed();
}
function predicted(guess) {
  asked.add(state.network);
  hidden = false;
  state.guess = guess;
  get('ask').hidden = true;
  refresh();
}
/* What was predicted, beside what is planned: how far it is off is the library's figure. */
function verdict() {
  const off = plan && !hidden && state.guess ? plan.guess_off : undefined;
  const said = state.guess.replace(/\D*$/, unit => ` ${unit || 'bytes'}`);
  const text = off === undefined ? '' : `You said ${said}; ` +
    `it is ${plan.tensors ? `${plan.tensors} tensors, ` : ''}${size(plan.bytes)} (${count(plan.bytes)} bytes): ` +
    (off === 0 ? 'right.' : `${Math.abs(off)} % too ${off > 0 ? 'many' : 'few'}.`);
  if (get('verdict').textContent !== text) get('verdict').textContent = text;
}
const boundary = e => Math.round((e.clientX - get('row').getBoundingClientRect().left - SIDE) / slot);
const is_free = c => c >= 1 && c < all.layers.length && !state.cuts.includes(c);

function set_cuts(cuts) {
  if (!all) return;
  state.cuts = cuts.sort((a, b) => a - b);
  cuts_changed();
}
/* Moves cut i to the nearest free place on the way to c; returns its index. */
function move_cut(i, c) {
  const from = state.cuts[i], rest = state.cuts.filter(k => k !== from);
  const to = Math.max(1, Math.min(all.layers.length - 1, c));
  if (to === from || rest.includes(to)) return i;
  set_cuts([...rest, to]);
  return state.cuts.indexOf(to);
}
function remove_cut(i) { set_cuts(state.cuts.filter((c, k) => k !== i)); }
function focus_cut(i) {
  const all_cuts = get('row').querySelectorAll('.cut');
  if (all_cuts.length) all_cuts[Math.max(0, Math.min(i, all_cuts.length - 1))].focus();
}

/* In the middle of the longest segment. */
function add_cut() {
  if (!all) return;
  const ends = [0, ...state.cuts, all.layers.length], long = ends.slice(1).map((e, i) => e - ends[i]);
  const i = long.indexOf(Math.max(...long));
  if (long[i] > 1) set_cuts([...state.cuts, ends[i] + (long[i] >> 1)]);
}
function even_out() {
  if (!all) return;
  const n = all.layers.length, segments = state.cuts.length + 1;
  set_cuts(state.cuts.map((c, i) => Math.round(n * (i + 1) / segments)));
}

let dragged = -1;
function listen_row() {
  const row = get('row');
  const off = e => {
    const box = row.getBoundingClientRect();
    return e.clientY < box.top - 30 || e.clientY > box.bottom + 30;
  };
  row.addEventListener('pointerdown', e => {
    if (!all || e.button) return;
    const cut = e.target.closest('.cut'), c = boundary(e);
    dragged = cut ? [...cut.parentNode.children].indexOf(cut) : state.cuts.indexOf(c);
    if (dragged < 0 && !is_free(c)) return;
    if (dragged < 0) set_cuts([...state.cuts, c]);
    dragged = dragged < 0 ? state.cuts.indexOf(c) : dragged;
    if (e.isTrusted) row.setPointerCapture(e.pointerId);
    focus_cut(dragged);
    e.preventDefault();
  });
  row.addEventListener('pointermove', e => {
    if (dragged < 0) return;
    get('row').querySelectorAll('.cut')[dragged].classList.toggle('off', off(e));
    const now = move_cut(dragged, boundary(e));
    if (now !== dragged) focus_cut(now);
    dragged = now;
  });
  const end = e => {
    if (dragged < 0) return;
    get('row').querySelectorAll('.cut')[dragged].classList.remove('off');
    if (e.type === 'pointerup' && off(e)) remove_cut(dragged);
    dragged = -1;
  };
  row.addEventListener('pointerup', end);
  row.addEventListener('pointercancel', end);
  row.addEventListener('keydown', cut_key);
}
function cut_key(e) {
  const cut = e.target.closest('.cut');
  if (!cut || e.ctrlKey || e.altKey || e.metaKey) return;
  const i = [...cut.parentNode.children].indexOf(cut), c = state.cuts[i];
  const to = { ArrowLeft: c - 1, ArrowDown: c - 1, ArrowRight: c + 1, ArrowUp: c + 1, PageDown: c - 5, PageUp: c + 5,
    Home: 1, End: all.layers.length - 1 }[e.key];
  if (to !== undefined) focus_cut(move_cut(i, to));
  else if (e.key === 'Delete' || e.key === 'Backspace') { remove_cut(i); focus_cut(i); } else return;
  e.preventDefault();
}

/* ---- the other controls ---- */

function policy_changed() {
  get('bytes_of').hidden = state.policy !== 'budget';
  draw_row();                            /* the cut follows the pointer at once, the figures follow */
  refresh();
}
function network_changed() {
  get('layers_of').hidden = state.network !== 'chain';
  get('list').hidden = state.network !== 'graph';
  get('layers_now').textContent = state.layers;
  all = null;
  refresh();
}
/* From the least to keep all. */
function budget_range() {
  const slide = get('budget_slide');
  slide.min = least || 1;
  slide.max = all.bytes;
  set_budget(Math.min(Math.max(state.budget, least), all.bytes));
}
function set_budget(bytes) {
  state.budget = bytes;
  get('budget').value = bytes;
  get('budget_slide').value = bytes;
  get('budget_words').textContent = size(+bytes);
}
function go(i) {
  if (!plan || hidden) return;
  state.at = Math.max(0, Math.min(plan.lines.length - 1, i));
  draw_step();
}
function listen() {
  const on = (id, event, does) => get(id).addEventListener(event, does);
  document.querySelectorAll('form').forEach(f => f.addEventListener('submit', e => e.preventDefault()));
  on('network', 'change', e => {
    Object.assign(state, { network: e.target.value, cuts: [], budget: 0 });
    network_changed();
  });
  on('layers', 'input', e => { Object.assign(state, { layers: +e.target.value, budget: 0 }); network_changed(); });
  on('graph', 'input', () => { state.budget = 0; network_changed(); });
  on('policy', 'change', e => { state.policy = e.target.value; policy_changed(); });
  on('budget', 'change', e => { set_budget(e.target.value.replace(/[,\s]/g, '')); refresh(); });
  on('budget_slide', 'input', e => { set_budget(+e.target.value); refresh(); });
  on('least', 'click', () => { set_budget(least); refresh(); });
  on('add', 'click', add_cut);
  on('even', 'click', even_out);
  on('none', 'click', () => set_cuts([]));
  on('ask', 'submit', () => {
    const value = get('guess').value.replace(/[,\s]/g, ''), unit = get('guess_unit').value;
    if (/^\d+$/.test(value) && +value > 0) predicted(value + (unit === 'bytes' ? '' : unit));
    else get('guess').focus();
  });
  on('skip', 'click', () => predicted(''));
  on('back', 'click', () => go(state.at - 1));
  on('on', 'click', () => go(state.at + 1));
  on('peak', 'click', () => go(plan ? plan.peak : 0));
  on('at', 'input', e => go(+e.target.value));
  on('memory', 'pointerdown', e => {
    const x = e.clientX - get('memory').getBoundingClientRect().left;
    if (scale) go(Math.floor((x - scale.left) * scale.steps / scale.width));
  });
  addEventListener('resize', draw);
  listen_row();
}

document.body.insertAdjacentHTML('afterbegin', patterns());
listen();
begin();
network_changed();
