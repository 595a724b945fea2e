"Block 3 begins with element 3 x 256. (24 threads of that block have no element.)"
