"900 = 3 x 256 + 132: thread 132 of block 3. (24 threads of that block have no element.)"
