static int more_1(void) { return largest(GCP_MB(1)) && largest(3000000); }
static int more_2(void) { return share(8) && share(100); }
