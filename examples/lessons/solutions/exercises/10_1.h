static double exercise_1(const gcp_plan *plan) { return 1 - (double)fixed(plan) / (double)plan->bytes; }
