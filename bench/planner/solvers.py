"""gcp's plans of small graphs beside exact search, CP-SAT, a MILP, and the schedules of checkpoint_schedules.

    python3 -m venv FOLDER && FOLDER/bin/pip install ortools checkpoint_schedules
    build/bench/bench/small 90 DATA && FOLDER/bin/python bench/planner/solvers.py DATA [SECONDS]

Reads DATA/small.csv and the graphs that small.c left there, writes DATA/solvers.csv and says where gcp is slower.
SECONDS: what a solver may take for a row (default 20), in one thread. All times are the cost model's. Columns:

exact     Dijkstra's algorithm over (ops done, values live): no list of instructions is faster. It knows live bytes, not
          addresses, so it may need fewer bytes than any layout.
cpsat, scip (and _bound)
          Checkmate's program (Jain et al. 2020) with the bytes of each slot: in a stage, which ends with an op's first
          run, each op runs once at most, in the file's order. Fewer lists than there are, so exact may be less.
revolve, hrevolve
          for steps-N: the package's schedules in as many states, in memory alone and with a disk. They copy and compute
          in turn; gcp copies while it computes."""
import csv
import heapq
import sys
import time
from checkpoint_schedules import EndReverse, HRevolve, Revolve
from checkpoint_schedules import Copy, Forward, Move, StorageType
from ortools.linear_solver import pywraplp

UNIT, COPY = 64, 2                          # as in small.c: bytes of a state, time of writing or reading one
STATES_MOST = 400000


class Graph:
    """gcp-graph 1: ops in the file's order, each with one output."""

    def __init__(self, path):
        rows = [line.split() for line in open(path) if line.strip() and line[0] != '#']
        names = {row[1]: i for i, row in enumerate(rows)}
        self.count = len(rows)
        self.kind = [row[0] for row in rows]
        self.cost = [float(row[2]) for row in rows]
        self.bytes = [int(row[3]) // UNIT for row in rows]
        self.space = [int(row[4]) // UNIT for row in rows]
        self.reads = [sorted({names[name] for name in row[5:]}) for row in rows]
        self.again = [kind == 'f' for kind in self.kind]
        self.readers = [[k for k in range(self.count) if v in self.reads[k]] for v in range(self.count)]


def exact(graph, budget):
    """The fastest list by live bytes. None: none fits, or too many states."""
    bits = [sum(1 << v for v in reads) for reads in graph.reads]
    sizes = {}

    def size(live):
        if live not in sizes:
            sizes[live] = sum(graph.bytes[v] for v in range(graph.count) if live >> v & 1)
        return sizes[live]

    best, heap = {(0, 0): 0.0}, [(0.0, 0, 0)]
    while heap:
        cost, done, live = heapq.heappop(heap)
        if cost > best[done, live]:
            continue
        if done == graph.count:
            return cost
        if len(best) > STATES_MOST:
            return None
        ways = [(0.0, done, live & ~(1 << v)) for v in range(done) if live >> v & 1]
        for v in range(done + 1):
            if (v < done and not graph.again[v]) or live >> v & 1 or bits[v] & ~live:
                continue
            if size(live | 1 << v) + graph.space[v] <= budget:
                ways.append((graph.cost[v], done + (v == done), live | 1 << v))
        for step, ops, values in ways:
            if cost + step < best.get((ops, values), 1e300):
                best[ops, values] = cost + step
                heapq.heappush(heap, (cost + step, ops, values))
    return None


def checkmate(graph, budget, backend, seconds):
    """(time, bound) of Checkmate's program; None where it has none."""
    solver, n = pywraplp.Solver.CreateSolver(backend), graph.count
    solver.SetTimeLimit(int(1000 * seconds))
    solver.SetNumThreads(1)
    run = [[solver.BoolVar('') for v in range(t + 1)] for t in range(n)]
    kept = [[solver.BoolVar('') for v in range(t)] for t in range(n)] + [[]]
    for t in range(n):
        solver.Add(run[t][t] == 1)
        for v in range(t):
            if not graph.again[v]:
                solver.Add(run[t][v] == 0)
            solver.Add(run[t][v] + kept[t][v] <= 1)
            if t:
                solver.Add(kept[t][v] <= (run[t - 1][v] + kept[t - 1][v] if v < t - 1 else run[t - 1][v]))
        for k in range(t + 1):
            for v in graph.reads[k]:
                solver.Add(run[t][k] <= run[t][v] + kept[t][v])
            live = []
            for v in range(t + 1):
                here = solver.NumVar(0, 1, '') if backend != 'SAT' else solver.BoolVar('')
                live.append(graph.bytes[v] * here)
                if v > k:
                    if v < t:
                        solver.Add(here >= kept[t][v])
                    continue
                for reader in [v] * (v == k) + [r for r in graph.readers[v] if k <= r <= t]:
                    solver.Add(here >= run[t][reader])
                if t + 1 < n:
                    solver.Add(here >= kept[t + 1][v])
            solver.Add(sum(live) + graph.space[k] * run[t][k] <= budget)
    solver.Minimize(sum(graph.cost[v] * run[t][v] for t in range(n) for v in range(t + 1)))
    status = solver.Solve()
    value = solver.Objective().Value() if status in (solver.OPTIMAL, solver.FEASIBLE) else None
    bound = solver.Objective().BestBound() if status != solver.INFEASIBLE else None
    return value, bound


def schedule_time(schedule, steps):
    """A schedule's time in gcp's terms: advances, a second each, copies to and from disk, and a second for each backward
    step, whose taping forward is in it."""
    total = steps
    for action in schedule:
        if isinstance(action, Forward):
            if not action.write_adj_deps:
                total += action.n1 - action.n0
            if action.write_ics and action.storage == StorageType.DISK:
                total += COPY
        if isinstance(action, (Copy, Move)) and action.from_storage == StorageType.DISK:
            total += COPY
        if isinstance(action, EndReverse):
            return total


def columns(data, row, seconds):
    budget = int(row['budget_bytes']) // UNIT
    if row['graph'].startswith('steps-'):
        steps, states = int(row['graph'][6:]), budget - 1
        if row['far_bytes'] == '0':
            return {'revolve': schedule_time(Revolve(steps, states), steps)}
        return {'hrevolve': schedule_time(HRevolve(steps, states, steps, wd=COPY, rd=COPY), steps)}
    graph, found = Graph(f"{data}/{row['graph']}.graph"), {}
    found['exact'] = exact(graph, budget)
    for name, backend in (('cpsat', 'SAT'), ('scip', 'SCIP')):
        begin = time.process_time()
        found[name], found[name + '_bound'] = checkmate(graph, budget, backend, seconds)
        found[name + '_ms'] = 1000 * (time.process_time() - begin)
    return found


def verdict(rows, name):
    both = [row for row in rows if row['gcp'] and row.get(name)]
    ratios = [float(row['gcp']) / float(row[name]) for row in both]
    alone = sum(1 for row in rows if row['gcp'] and name in row and not row[name])
    missed = [row for row in rows if not row['gcp'] and row.get(name)]
    slower = sorted(((r, row) for r, row in zip(ratios, both) if r > 1 + 1e-6), key=lambda pair: -pair[0])
    print(f"{name}: {len(both)} rows of both, gcp faster in {sum(r < 1 - 1e-6 for r in ratios)}, slower in "
          f"{len(slower)}; {alone} rows of gcp alone, {len(missed)} of {name} alone")
    for ratio, row in slower[:8]:
        proven = ', proven with addresses' if float(row['bound']) > float(row['gcp']) * (1 - 1e-9) else ''
        print(f"    {row['graph']} in {row['budget_bytes']}: {row['gcp']} against {row[name]:g}, {ratio:.3f}{proven}")


def main():
    data, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    methods = ['exact', 'cpsat', 'scip', 'revolve', 'hrevolve']
    extra = ['exact', 'cpsat', 'cpsat_bound', 'cpsat_ms', 'scip', 'scip_bound', 'scip_ms', 'revolve', 'hrevolve']
    with open(f'{data}/small.csv') as source, open(f'{data}/solvers.csv', 'w') as target:
        reader = csv.DictReader(source)
        writer = csv.writer(target, lineterminator='\n')
        writer.writerow(reader.fieldnames + extra)
        rows = []
        for row in reader:
            row.update(columns(data, row, seconds))
            rows.append(row)
            numbers = (row.get(name) for name in extra)
            writer.writerow([row[name] for name in reader.fieldnames] + ['' if x is None else f'{x:.9g}' for x in numbers])
            target.flush()
    for name in methods:
        verdict(rows, name)
    proven = [row for row in rows if row['gcp'] and float(row['bound']) > float(row['gcp']) * (1 - 1e-9)]
    print(f"{len(proven)} of {sum(1 for row in rows if row['gcp'])} plans are proven by gcp itself")


if __name__ == '__main__':
    main()
