/* Drives the playground's page, behind its script: its controls, its cuts by pointer and by key. What it asked and what
   it was answered goes into #requests and #answers, which playground.cmake compares with the native program's. */
const log = new Map(), bad = [], times = { drag: 0, budget: 0 };
let checks = 0;
const good = (ok, text) => { checks++; if (!ok) bad.push(text); };
const answered_before = answered;
answered = text => { log.set(running[1][0], text); answered_before(text); };
const fire = (e, type, more) => e.dispatchEvent(Object.assign(new Event(type, { bubbles: true }), more));
const press = (e, key) => e.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const cuts = () => document.querySelectorAll('.cut');

/* ---- every number that is shown stands in an answer ---- */

function numbers(value, into) {
  if (typeof value === 'number') for (const v of [value, Math.abs(value)]) {
    [String(v), count(v), v.toFixed(4), size(v), time(v)].forEach(t => into.add(t.split(' ')[0]));
  } else if (value && typeof value === 'object') Object.values(value).forEach(v => numbers(v, into));
}
function names(value, into) {
  if (typeof value === 'string') into.add(value);
  else if (value && typeof value === 'object') Object.values(value).forEach(v => names(v, into));
}
function shown(what) {
  const known = new Set(), called = new Set();
  numbers([all, plan, least, +state.budget], known);
  names([all, plan], called);
  for (let i = 0; plan && i <= plan.lines.length; i++) known.add(String(i));
  const parts = ['bytes', 'bytes_words', 'seconds', 'seconds_words', 'split', 'now', 'lines', 'live', 'row',
    'bytes_bars', 'seconds_bars', 'memory'];
  const walk = document.createTreeWalker(get('figures').closest('main'), NodeFilter.SHOW_TEXT);
  let text = '';
  while (walk.nextNode()) if (walk.currentNode.parentElement.closest(parts.map(p => `#${p}`).join())) {
    text += `${walk.currentNode.data}\n`;
  }
  [...called].sort((a, b) => b.length - a.length).forEach(n => { if (/\d/.test(n)) text = text.replaceAll(n, ' '); });
  const unknown = (text.match(/\d[\d,]*(\.\d+)?(e[-+]\d+)?/g) || []).filter(t => !known.has(t.replace(/,$/, '')));
  good(!unknown.length, `${what}: ${unknown.slice(0, 5)} in no answer`);
  good(plan && !hidden ? get('bytes').textContent === size(plan.bytes) && get('bytes_words').textContent.startsWith(
    `${count(plan.bytes)} bytes`) && get('why').textContent === plan.why && get('split').rows[3].cells[2].textContent
    .startsWith(size(plan.split.kept)) && get('seconds').textContent === time(plan.seconds) &&
    get('now').textContent.includes(`${count(plan.lines[state.at][3])} bytes`)
    : get('bytes').textContent === '?', `${what}: its figures`);
}

/* ---- settings ---- */

function set(network, policy, more) {
  slow = false;
  if (state.network !== network) fire(Object.assign(get('network'), { value: network }), 'change');
  if (more && more.layers) fire(Object.assign(get('layers'), { value: more.layers }), 'input');
  if (more && more.graph) fire(Object.assign(get('graph'), { value: more.graph }), 'input');
  asked.add(network);
  if (more && more.cuts) set_cuts(more.cuts);
  slow = false;
  fire(Object.assign(get('policy'), { value: policy }), 'change');
  const began = performance.now();
  if (more && more.budget) fire(Object.assign(get('budget'), { value: more.budget }), 'change');
  const took = performance.now() - began;
  shown(`${network} ${policy}`);
  return took;
}
function drag() {
  set('chain', 'segments', { layers: 60, cuts: [8, 16, 24, 32, 40, 48] });
  const box = get('row').getBoundingClientRect();
  const at = c => ({ clientX: box.left + cut_x(c), clientY: box.top + 60, button: 0 });
  const took = [];
  fire(cuts()[2], 'pointerdown', at(24));
  for (const c of [25, 26, 27, 28, 29, 30, 29, 28, 27]) {
    const began = performance.now();
    slow = false;
    fire(get('row'), 'pointermove', at(c));
    get('memory').getBoundingClientRect();               /* lays the page out */
    took.push(performance.now() - began);
    good(state.cuts[2] === c && plan.bound_seconds > 0, `dragged to ${state.cuts}`);
  }
  fire(get('row'), 'pointerup', at(27));
  times.drag = took.sort((a, b) => a - b)[took.length >> 1];
  fire(get('row'), 'pointerdown', at(55));               /* adds one, and drags it off the row */
  good(state.cuts.includes(55), `no cut at 55: ${state.cuts}`);
  fire(get('row'), 'pointerup', { ...at(55), clientY: box.bottom + 99 });
  good(!state.cuts.includes(55) && state.cuts.length === 6, `still there: ${state.cuts}`);
  press(cuts()[0], 'ArrowLeft');
  good(state.cuts[0] === 7, `key: ${state.cuts}`);
  press(cuts()[0], 'Delete');
  good(state.cuts.length === 5 && cuts().length === 5, `deleted: ${state.cuts}`);
}
function predict() {
  asked.clear();
  set_cuts([20, 40]);
  good(hidden && !get('ask').hidden && get('bytes').textContent === '?', 'figures before the prediction');
  predict_and('bytes', '90000', /You said 90000 bytes; it is \d+ tensors, .*%/);
  asked.clear();
  set_cuts([8, 16, 24, 32, 40, 48]);
  predict_and('tensors', '19', /You said 19 tensors; it is 19 tensors, .*: right\.$/);
}
function predict_and(unit, guess, verdict) {
  get('guess').value = guess;
  get('guess_unit').value = unit;
  fire(get('ask'), 'submit');
  good(verdict.test(get('verdict').textContent), `verdict: ${get('verdict').textContent}`);
  shown('after a prediction');
}

/* Of text at least 4.5, of shapes 3. */
function contrasts() {
  const light = c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16) / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const rules = [...document.styleSheets[0].cssRules];
  for (const r of [rules[0], rules.find(m => m.media).cssRules[0]]) {
    const l = name => light(r.style.getPropertyValue(name).trim());
    const ratio = (a, b) => (Math.max(l(a), l(b)) + .05) / (Math.min(l(a), l(b)) + .05);
    for (const name of ['--ink', '--dim']) for (const ground of ['--ground', '--faint']) {
      good(ratio(name, ground) >= 4.5, `contrast of ${name} on ${ground}: ${ratio(name, ground).toFixed(2)}`);
    }
    for (const name of ['--mark', '--line', ...Array.from(kinds, (k, i) => `--k${i}`)]) {
      good(ratio(name, '--ground') >= 3, `contrast of ${name}: ${ratio(name, '--ground').toFixed(2)}`);
    }
  }
}

function drive() {
  good(size(49344) === '48.19 KiB' && time(9.9124e-5) === '99.12 µs' && count(49344) === '49,344', 'formats');
  shown('as it opens');
  for (const policy of ['keep_all', 'uniform', 'sqrt', 'recursive', 'cheap']) set('chain', policy);
  set('chain', 'budget', { budget: '60,000' });
  set('chain', 'budget', { budget: '5000' });
  good(get('error').textContent.includes('the least found to work is'), 'a budget that is too small');
  get('least').click();
  good(plan && plan.bytes <= least && state.budget === least, 'the least that was found');
  set('chain', 'budget', { budget: 'all' });
  good(get('error').textContent.startsWith('budget is a whole number'), get('error').textContent);
  set('chain', 'segments', { layers: 1 });
  drag();
  predict();
  set('resnet', 'segments', { cuts: [3, 6] });
  set('resnet', 'cheap');
  set('resnet50', 'segments', { cuts: [4, 8, 14] });
  times.budget = set('resnet50', 'budget', { budget: '250000000' });
  set('unet', 'segments', { cuts: [2, 4, 7] });
  set('densenet', 'sqrt');
  set('graph', 'segments', { cuts: [2, 4] });
  set('graph', 'budget', { budget: '320000' });
  set('graph', 'keep_all', { graph: 'f a 1 64 0\nf b 1 64 0 c' });
  good(get('error').textContent.includes('line 2: no tensor c') && get('bytes').textContent === '?', 'a wrong list');
  set('chain', 'recursive');
  for (const [key, by] of [['back', -1], ['on', 0], ['on', 1], ['peak', 0]]) {
    get(key).click();
    const here = get('lines').querySelector('.here').textContent;
    good(state.at === plan.peak + by && here.startsWith(`${state.at + 1} `), key);
  }
  contrasts();
}
try { drive(); } catch (e) { bad.push(e.stack); }
document.body.innerHTML = '<pre id="requests"></pre><pre id="answers"></pre><pre id="bad"></pre><p id="end"></p>';
get('requests').textContent = [...log.keys()].join('\n');
get('answers').textContent = [...log.values()].join('\n');
get('bad').textContent = bad.join('\n');
get('end').textContent = `checks ${checks} drag ${times.drag.toFixed(1)} budget ${times.budget.toFixed(1)} end`;
