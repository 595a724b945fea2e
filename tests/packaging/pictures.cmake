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
  if(DOT)
    execute_process(COMMAND ${DOT} -Tsvg ${graph} RESULT_VARIABLE result OUTPUT_VARIABLE svg ERROR_VARIABLE text)
    if(result OR NOT svg MATCHES "</svg>" OR text MATCHES "rror|arning")
      message(SEND_ERROR "dot ${graph}: ${text}")
    endif()
  endif()
endforeach()

# All pages in one, a frame each, as a browser takes a second to start. In each: step, play, point; what it then says goes into
# the outer page. Frames of a file may not look into each other, so each posts a message.
set(press [=[<script>
const press = key => document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const read = () => document.querySelector('.now').textContent;
press('Home');
const first = read();
for (let i = 0; i < 3; i++) press('ArrowRight');
const third = read();
press('End');
show_tables();
const last = read(), rows = document.querySelectorAll('table tr').length;
const rect = document.querySelector('rect[data-b]'), box = rect.getBoundingClientRect();
rect.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x + 1, clientY: box.y + 1 }));
const told = document.getElementById('tip').textContent;
press('Home');
press('p');
const peak = read();
document.getElementById('play').click();
const playing = document.getElementById('play').textContent === 'Pause';
document.getElementById('play').click();
const good = first.startsWith('Instruction 1 of ') && third.startsWith('Instruction 4 of ') && last !== third && rows > 1 &&
  /^\S[^]*\n.*bytes? at [\d,]+\nfrom /.test(told) && peak.includes('the peak') && playing &&
  !document.querySelector('b > b, td b');
parent.postMessage(good ? 'good' : [first, third, last, rows, told, peak, playing].join(' | '), '*');
</script>]=])
file(GLOB pages ${OUT}/*.html)
set(frames "")
set(count 0)
foreach(page IN LISTS pages)
  get_filename_component(name ${page} NAME)
  file(READ ${page} text)
  file(WRITE ${OUT}/pages/${name} "${text}")
  file(APPEND ${OUT}/pages/${name} "${press}")
  string(APPEND frames "<iframe src=\"${name}\"></iframe>\n")
  math(EXPR count "${count} + 1")
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
