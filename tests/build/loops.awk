# Of `cuobjdump -sass`: each kernel, its instructions, those of its main loop, the mma among them, and those of the loop around it (0: none).
# A loop is what lies between a branch back and where it leads; the main one is the innermost loop with the most mma, or FFMA, or else the longest.
function hex(s,  n, i) { for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return n }
function contains(a, b) { return a != b && to[a] <= to[b] && from[b] <= from[a] && (to[a] != to[b] || from[a] != from[b]) }
function kernel_ends(  a, b, i, inner, main, around) {
  if (name == "") return
  main = around = -1
  for (a = 0; a < loops; a++) {
    size[a] = mma[a] = fma[a] = 0; inner = 1
    for (b = 0; b < loops; b++) if (contains(a, b)) inner = 0
    for (i = 0; i < count; i++) if (address[i] >= to[a] && address[i] <= from[a] && text[i] !~ /^NOP/) { size[a]++; mma[a] += text[i] ~ /HMMA/; fma[a] += text[i] ~ /FFMA/ }
    if (inner && (main < 0 || 1e6 * mma[a] + 1e3 * fma[a] + size[a] > 1e6 * mma[main] + 1e3 * fma[main] + size[main])) main = a
  }
  for (a = 0; a < loops; a++) if (main >= 0 && contains(a, main) && (around < 0 || size[a] < size[around])) around = a
  print name, count, main < 0 ? 0 : size[main], main < 0 ? 0 : mma[main], around < 0 ? 0 : size[around]
}
/Function :/ { kernel_ends(); name = $3; count = loops = 0; next }
match($0, /\/\*[0-9a-f]+\*\//) && /;/ {
  at = hex(substr($0, RSTART + 2, RLENGTH - 4))
  line = substr($0, RSTART + RLENGTH); sub(/^ +/, "", line)
  address[count] = at; text[count++] = line
  if (line ~ /BRA/ && match(line, /0x[0-9a-f]+/)) {
    goal = hex(substr(line, RSTART + 2, RLENGTH - 2))
    if (goal < at) { to[loops] = goal; from[loops++] = at }      # a branch to itself ends a kernel
  }
}
END { kernel_ends() }
