// Keys: right, down, page down, space: on; left, up, page up: back; Home, End; n: notes; s: notes in a second window;
// f: full screen. A swipe turns, too. The slide's number is in the address.
'use strict';
const slides = [...document.querySelectorAll('section')];
const root = document.documentElement;
const bar = document.body.appendChild(Object.assign(document.createElement('div'), { id: 'bar' }));
let now = 0, shown = 0;                   // the slide, and how many of its answers are there
let other = location.search === '?notes' ? opener : null;
let began = 0;                            // when the first slide was left

const answers = () => [...slides[now].querySelectorAll('.later')];

function clock() {
  const s = began ? Math.floor((Date.now() - began) / 1000) : 0;
  const time = Math.floor(s / 60) + ':' + String(s % 60).padStart(2, '0');
  bar.textContent = (root.classList.contains('notes') ? time + ' gone, ' : '') + (now + 1) + ' / ' + slides.length;
}

function draw() {
  slides.forEach((s, i) => s.classList.toggle('now', i === now));
  answers().forEach((a, i) => a.classList.toggle('wait', i >= shown));
  if (location.hash !== '#' + (now + 1)) history.replaceState(null, '', '#' + (now + 1));
  if (!began && now > 0) began = Date.now();
  scrollTo(0, 0);
  clock();
}

function go(slide, answers_shown) {
  now = Math.max(0, Math.min(slides.length - 1, slide));
  shown = answers_shown;
  draw();
  if (other) other.postMessage({ now, shown }, '*');
}

function next() {
  if (shown < answers().length) go(now, shown + 1);
  else if (now + 1 < slides.length) go(now + 1, 0);
}

function back() {
  if (shown > 0) go(now, shown - 1);
  else if (now > 0) go(now - 1, slides[now - 1].querySelectorAll('.later').length);
}

function notes() {
  root.classList.toggle('notes');
  clock();
}

function second_window() {
  other = open(location.href.replace(/[?#].*/, '') + '?notes#' + (now + 1), 'notes', 'width=1200,height=680');
}

function full_screen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else root.requestFullscreen();
}

const keys = {
  ArrowRight: next, ArrowDown: next, PageDown: next, ' ': next, Enter: next,
  ArrowLeft: back, ArrowUp: back, PageUp: back, Backspace: back,
  Home: () => go(0, 0), End: () => go(slides.length - 1, 0),
  n: notes, s: second_window, f: full_screen
};

document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key]) return;
  e.preventDefault();
  if (e.key === ' ' && e.shiftKey) back();
  else keys[e.key]();
});

let touch = null;
document.addEventListener('touchstart', e => {
  const wide = e.target.closest('.picture, pre, table');      // what scrolls sideways keeps its swipes
  touch = e.touches.length > 1 || (wide && wide.scrollWidth > wide.clientWidth) ? null : e.touches[0];
}, { passive: true });
document.addEventListener('touchend', e => {
  if (!touch) return;
  const x = e.changedTouches[0].clientX - touch.clientX, y = e.changedTouches[0].clientY - touch.clientY;
  touch = null;
  if (Math.abs(x) < 40 || Math.abs(x) < 2 * Math.abs(y)) return;
  if (x < 0) next();
  else back();
}, { passive: true });

function from_address() {
  const n = parseInt(location.hash.slice(1), 10);
  if (n > 0 && n !== now + 1) go(n - 1, 0);
}

addEventListener('hashchange', from_address);
addEventListener('message', e => {
  if (!other || e.source !== other || !slides[e.data.now]) return;
  now = e.data.now;
  shown = e.data.shown;
  draw();
});

root.classList.add('one');
if (location.search === '?notes') notes();
from_address();
draw();
setInterval(clock, 1000);
