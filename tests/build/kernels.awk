# A line a kernel: name, registers, bytes spilled, bytes of shared memory; and, of loops.awk's lines, instructions, those of the main loop, the
# mma among them, those of the loop around it. awk -v arch=sm_90 -f kernels.awk PTXAS_OUTPUT [LOOPS]
FNR == 1 { file++ }
file == 1 && /Compiling entry function/ { split($0, part, "'"); name = part[4] == arch ? part[2] : "" }
file == 1 && name != "" && /spill stores/ { match($0, /[0-9]+ bytes spill stores/); spills = substr($0, RSTART) + 0 }
file == 1 && name != "" && /Used [0-9]+ registers/ {
  match($0, /Used [0-9]+/); used = substr($0, RSTART + 5) + 0
  shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
  order[++kernels] = name; line[name] = used " " spills " " shared; name = ""
}
file == 2 { counts[$1] = $2 " " $3 " " $4 " " $5 }
END { for (i = 1; i <= kernels; i++) print order[i], line[order[i]], order[i] in counts ? counts[order[i]] : "- - - -" }
