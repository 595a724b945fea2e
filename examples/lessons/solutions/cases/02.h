static int more_1(void) { return layer_of(7); }
static int more_2(void) { return slab_of(3) && slab_of(16); }
