static double exercise_2(int own, int batch) { return (double)own / batch; }
