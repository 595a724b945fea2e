# What test_pictures writes, opened by those it is for: pages in a headless Chromium, which presses keys and points at them,
# graphs in Graphviz. What is not on this machine is skipped. cmake -DPROGRAM= -DOUT= -P pictures.cmake
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/pages)
execute_process(COMMAND ${PROGRAM} ${OUT} RESULT_VARIABLE result OUTPUT_VARIABLE text)
if(result)
  message(FATAL_ERROR "${text}")
endif()
find_program(DOT dot)
find_program(BROWSER NAMES chromium chromium-browser google-chrome)
if(NOT DOT AND NOT BROWSER)
  message("SKIPPED: neither Graphviz nor Chromium is here")
  return()
endif()

file(GLOB graphs ${OUT}/*.dot)
foreach(graph IN LISTS graphs)
  file(SIZE ${graph} size)
  if(DOT AND size LESS 60000)            # of hundreds of ops with random skips dot may place nodes for ever
    execute_process(COMMAND ${DOT} -Tsvg ${graph} RESULT_VARIABLE result OUTPUT_VARIABLE svg ERROR_VARIABLE text)
    if(result OR NOT svg MATCHES "</svg>" OR text MATCHES "rror|arning")
      message(SEND_ERROR "dot ${graph}: ${text}")
    endif()
  endif()
endforeach()

# All pages in one, a frame each, as a browser takes a second to start; frames are as wide as a phone and a desk in turn.
# In each: step, play, sort, point, zoom, switch. What fails goes into the outer page. Frames of a file may not look into
# each other, so each posts a message.
set(press [=[<script>
const press = (key, more) => document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, ...more }));
const read = () => document.querySelector('.now').textContent, p = plans[0], close = (a, b) => Math.abs(a - b) < .6;
const raw = JSON.parse(document.getElementById('data').textContent)[0], columns_of = k =>
  [...document.querySelector('tbody').rows].filter(r => r.cells.length > 1).map(r => r.cells[k].textContent);
const numbers = k => columns_of(k).map(s => +s.replaceAll(',', ''));
const sorted = (a, down) => a.every((n, k) => !k || (down ? a[k - 1] >= n : a[k - 1] <= n));
const head = k => document.querySelectorAll('thead button')[k].click();
const over = (e, kind, x, y) => e.dispatchEvent(new PointerEvent(kind, { bubbles: true, clientX: x, clientY: y }));
const handful = [0, .2, .4, .6, .8, 1].map(part => Math.round(part * (raw.lines.length - 1)));
const checks = {
  steps() {
    press('Home');
    const first = read();
    for (let i = 0; i < 3; i++) press('ArrowRight');
    const fourth = read();
    press('End');
    return first.startsWith('Instruction 1 of ') && fourth.startsWith('Instruction 4 of ') && read() !== fourth;
  },
  peak_and_play() {
    press('Home');
    press('p');
    const peak = read();
    play.click();
    const playing = play.textContent === 'Pause';
    play.click();
    return peak.includes('the peak') && playing && !document.querySelector('b > b, td b');
  },
  sorting() {
    show_tables();
    const first = numbers(2), largest = sorted(first, true);
    head(2);
    const smallest = sorted(numbers(2), false);
    head(3);
    const highest = sorted(numbers(3), true);
    head(0);
    const names = sorted(columns_of(0), false) && document.querySelector('th').ariaSort === 'ascending';
    head(2);
    return first.length && largest && smallest && highest && names && sorted(numbers(2), true);
  },
  rows_tell() {
    const [one, two] = document.querySelector('tbody').rows;
    one.focus();
    const t = tip.getBoundingClientRect(), r = one.getBoundingClientRect();
    const over = t.top < r.bottom && t.bottom > r.top && t.left < r.right && t.right > r.left;
    const told = !over && tip.textContent.startsWith(one.cells[0].textContent) && p.outline[1].getAttribute('d').length > 9;
    if (two) one.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true, cancelable: true }));
    return told && (!two || document.activeElement === two && tip.textContent.startsWith(two.cells[0].textContent));
  },
  told_beside() {
    return p.rects.filter(r => r.b).slice(0, 30).every(({ e }) => {
      e.scrollIntoView({ block: 'center' });
      const r = e.getBoundingClientRect();
      over(e, 'pointermove', r.x + r.width / 2, r.y + r.height / 2);
      const t = tip.getBoundingClientRect(), room = r.left > t.width + 14 || innerWidth - r.right > t.width + 14 ||
        r.top > t.height + 14 || innerHeight - r.bottom > t.height + 14;
      return /^\S[^]*\n.*bytes? at [\d,]+\nfrom /.test(tip.textContent) && (!room || t.right <= r.left ||
        t.left >= r.right || t.bottom <= r.top || t.top >= r.bottom);
    });
  },
  outlines() {
    return p.rects.every(({ e }) => {
      const [w, h] = ['width', 'height'].map(name => +e.getAttribute(name));
      return (parseFloat(getComputedStyle(e).strokeWidth) > 0) === (Math.min(w, h) > 3);
    });
  },
  kinds_stack_up() {
    press('v');
    const good = handful.every(i => {
      const live = raw.buffers.filter(b => b[2] <= i && i <= b[3]), middle = x(i + .5);
      const top = Math.max(raw.numbers + raw.lines[i][5], ...live.map(b => b[4] + b[5]));
      const at = dy => { const s = p.svg.createSVGPoint(); s.x = middle; s.y = y(raw.state + top) + dy; return s; };
      return p.sums[i].every(n => n >= 0) && p.sums[i].reduce((a, n) => a + n, 0) === raw.state + top &&
        p.paths.some(e => e.isPointInFill(at(1.2))) && !p.paths.some(e => e.isPointInFill(at(-1.2)));
    });
    const seen = () => p.by_address.getAttribute('display') !== 'none';
    const other = !seen() && read().includes('By kind: ');
    const named = p.caption.textContent.includes(`state, ${size(raw.state)}`);
    press('v');
    return good && other && named && seen();
  },
  time_axis() {
    press('t');
    const end = Math.max(...plans.map(q => q.lines.map(l => l.end)).flat());
    const good = p.rects.filter(r => r.b).every(({ b, e }) =>
      close(+e.getAttribute('x'), LEFT + wide * raw.lines[b.first][8] / end) &&
      close(+e.getAttribute('width'), wide * (raw.lines[b.last][9] - raw.lines[b.first][8]) / end));
    const some = raw.lines.some(l => l[4] > 0), said = p.caption.textContent.match(/time, (measured|planned)\. /);
    press('t');
    return good && said && some === (said[1] === 'measured');
  },
  zoom() {
    const e = p.svg, from = e.getBoundingClientRect(), all = view.x[1];
    const px = Math.round(from.left + LEFT + wide / 3) - from.left, before = at_x(px);
    const turn = more => !e.dispatchEvent(new WheelEvent('wheel', { deltaY: -100, cancelable: true, bubbles: true,
      clientX: from.left + px, clientY: from.top + TOP + 9, ...more }));
    const scrolls = !turn({}) && view.x[1] === all, zoomed = turn({ ctrlKey: true }) && view.x[1] - view.x[0] < 1;
    const stays = Math.abs(at_x(px) - before) < 1e-6 * steps;
    press('0');
    press('+');
    press('+');
    const long = view.x[1] - view.x[0], left = view.x[0];
    press('ArrowRight', { shiftKey: true });
    const moved = view.x[0] > left || view.x[1] === 1;
    press('y');
    const taller = view.y[1] < 1;
    press('Home');
    const follows = view.x[0] === 0;
    press('0');
    return scrolls && zoomed && stays && long < 1 && moved && taller && follows && view.x[1] + view.y[1] === 2;
  },
  round_ticks() {
    const marks = [...p.axes.querySelectorAll('text')].map(t => t.textContent).filter(t => /(bytes|[KMG]iB)$/.test(t));
    const main = marks.slice(0, marks.lastIndexOf(marks.find(t => t.startsWith('0 '))) || undefined);
    const step = +main[1].replace(/[^\d.]/g, '') - +main[0].replace(/[^\d.]/g, '');
    return /^(1|2|2\.5|5|25)$/.test(String(+(step / 10 ** Math.floor(Math.log10(step) + 1e-9)).toPrecision(6))) &&
      marks.every(t => /^[\d,]+(\.\d{1,2})? /.test(t));
  },
  budget() {
    const e = p.svg.querySelector('.budget'), told = p.svg.textContent.includes('budget '), at = raw.budget - raw.state;
    return !raw.budget ? !told : told && (e ? close(+e.getAttribute('y1'), y(at)) : at > top_bytes);
  },
  two_plans() {
    const saves = /: [\d,.]+ (bytes|.iB) \u2192 [\d,.]+ (bytes|.iB) at the peak \([+\u2212][\d.]+ %\), time \u00d7 \d/;
    const said = document.getElementById('saved').textContent, wide = document.documentElement.scrollWidth;
    return document.querySelectorAll('.picture').length === plans.length && wide <= innerWidth &&
      (plans.length < 2 ? !said : saves.test(said)) &&
      plans.every(q => q.svg.getBoundingClientRect().right <= innerWidth);
  }
};
addEventListener('load', () => {
  fit();
  const bad = Object.keys(checks).filter(name => {
    try { return !checks[name](); } catch (e) { return name + e; }
  });
  parent.postMessage(bad.length ? `${location.pathname.split('/').pop()}: ${bad.join(', ')}` : 'good', '*');
});
</script>]=])
file(GLOB pages ${OUT}/*.html)
set(frames "")
set(count 0)
foreach(page IN LISTS pages)
  get_filename_component(name ${page} NAME)
  file(READ ${page} text)
  file(WRITE ${OUT}/pages/${name} "${text}")
  file(APPEND ${OUT}/pages/${name} "${press}")
  math(EXPR count "${count} + 1")
  math(EXPR wide "390 + ${count} % 2 * 890")
  string(APPEND frames "<iframe width=\"${wide}\" height=\"844\" src=\"${name}\"></iframe>\n")
endforeach()
file(WRITE ${OUT}/pages/all.htm "<!DOCTYPE html><p id=\"said\"></p><script>let good = 0;
addEventListener('message', e => { if (e.data === 'good') document.title = ++good + ' good';
  else document.getElementById('said').append(e.data + '\\n'); });</script>\n${frames}")
if(BROWSER)
  execute_process(COMMAND ${BROWSER} --headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --dump-dom
                  --user-data-dir=${OUT}/profile file://${OUT}/pages/all.htm OUTPUT_VARIABLE text ERROR_QUIET TIMEOUT 100)
  if(NOT text MATCHES "<title>${count} good</title>")
    string(SUBSTRING "${text}" 0 3000 text)
    message(FATAL_ERROR "of ${count} pages: ${text}")
  endif()
endif()
message("${count} pages")
