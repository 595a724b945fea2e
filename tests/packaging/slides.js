// Put behind a copy of a lecture by slides.cmake: goes through it as a lecturer would, and says what is wrong. The
// frame was opened at #3. In a frame as narrow as a phone: only that nothing is wider.
'use strict';
const wrong = [];
const check = (good, text) => good || wrong.push('slide ' + (now + 1) + ': ' + text);
const press = key => document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const page = () => slides[now].querySelector('.slide');
const holds = e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight;

function swipe(from, to) {
  for (const [type, x] of [['touchstart', from], ['touchend', to]]) {
    const touches = [{ clientX: x, clientY: 100 }];
    page().dispatchEvent(Object.assign(new Event(type, { bubbles: true }), { touches, changedTouches: touches }));
  }
}

function fits() {
  const box = page().getBoundingClientRect();
  for (const e of page().querySelectorAll('*:not(svg *)')) {
    const r = e.getBoundingClientRect();
    check(r.left >= box.left - 1 && r.right <= box.right + 1 && r.top >= box.top - 1 && r.bottom <= box.bottom + 1,
      e.tagName + ' ' + e.className + ' leaves the frame');
    if (e.tagName === 'PRE') check(holds(e), 'code is cut off');
    if (e.tagName !== 'svg' && e.className !== 'comment')
      check(parseFloat(getComputedStyle(e).fontSize) >= 18, e.tagName + ' is too small to read');
  }
  check(holds(page()), 'more than the frame holds');
}

function pictures() {
  for (const t of page().querySelectorAll('svg text')) {
    const size = t.getScreenCTM().a * parseFloat(getComputedStyle(t).fontSize);
    check(size >= 18, 'a picture has text of ' + size.toFixed(1) + ' pixels');
    const own = t.getBoundingClientRect(), all = t.ownerSVGElement.getBoundingClientRect();
    check(own.left >= all.left - 1 && own.right <= all.right + 1, 'a picture cuts "' + t.textContent + '" off');
  }
}

function a_slide() {
  const waits = [...slides[now].querySelectorAll('.later')];
  check(slides.filter(s => s.offsetHeight > 0).length === 1, 'not one slide at a time');
  check(location.hash === '#' + (now + 1), 'the address says ' + location.hash);
  for (const w of waits) {
    check(getComputedStyle(w).visibility === 'hidden', 'the answer is there before it is asked for');
    press('ArrowRight');
    check(getComputedStyle(w).visibility === 'visible', 'the answer is not shown');
  }
  fits();
  pictures();
}

function hall() {
  check(now === 2, 'the address #3 was not opened');
  press('Home');
  for (let n = 0; n < slides.length; n++, press(n % 2 ? ' ' : 'PageDown')) {
    check(now === n, 'a key left slide ' + (n + 1) + ' out');
    a_slide();
  }
  press('PageUp');
  press('Backspace');
  check(now < slides.length - 1, 'no way back');
  press('Home');
  swipe(500, 300);
  check(now === 1, 'a swipe does not go on');
  swipe(300, 500);
  check(now === 0, 'a swipe does not go back');
  press('n');
  check(slides[0].querySelector('aside').offsetHeight > 50, 'key n shows no notes');
  press('n');
  check(slides[0].querySelector('aside').offsetHeight === 0, 'key n does not hide notes');
  other = window;
  dispatchEvent(new MessageEvent('message', { source: window, data: { now: 4, shown: 0 } }));
  check(now === 4, 'the second window does not follow');
  other = null;
}

function phone() {
  for (press('Home'); now + 1 < slides.length; press('ArrowRight'))
    check(root.scrollWidth <= innerWidth, 'wider than a phone: ' + root.scrollWidth);
}

if (innerWidth < 700) phone();
else hall();
const said = document.title + ', ' + innerWidth + ': ' + [...new Set(wrong)].join('; ');
parent.postMessage(wrong.length ? said : 'good', '*');
