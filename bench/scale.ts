import type { Bench, BenchCase } from "./framework.js";

/**
 * Turns of the embedded model in Blackjack, collected by worker processes of one thread over Redis.
 * Count: turns.
 */
export type PlayWork = {
  work: "play";
  workers: number;
  slots: number;
  slots_per_job: number;
  /** Turns of each slot. */
  rounds: number;
  /** Time that an environment waits in each turn. */
  wait_ms: number;
};
/**
 * Workers without a model that wait as jobs take time, and a learner of `updates` updates at a
 * staleness of 1. Count: jobs.
 */
export type SimulateWork = {
  work: "simulate";
  workers: number;
  updates: number;
  job_seconds: [number, number];
  update_seconds: number;
  /** Size of jobs and answers. */
  bytes: number;
};

const WORKERS = [1, 2, 4, 8];

function playCase(name: string, parameters: PlayWork, repeat = 3): BenchCase {
  return {
    name,
    parameters,
    metric: { kind: "rate", unit: "turns/s" },
    freshProcess: true,
    warmup: 0,
    repeat,
    maxRuns: 1,
  };
}

const waitCases = [8, 64].flatMap((slots) =>
  WORKERS.map((workers) =>
    playCase(`wait_${slots}_workers_${workers}`, {
      work: "play",
      workers,
      slots,
      slots_per_job: slots / 8,
      rounds: 5,
      wait_ms: 200,
    }),
  ),
);
const sampleCases = [1, 2].map((workers) =>
  playCase(
    `sample_workers_${workers}`,
    { work: "play", workers, slots: 64, slots_per_job: 8, rounds: 64, wait_ms: 0 },
    5,
  ),
);
function simulationCase(workers: number, work: Omit<SimulateWork, "work" | "workers" | "bytes">): BenchCase {
  return {
    name: `simulate_${workers}`,
    parameters: { work: "simulate", workers, bytes: 20_000, ...work } satisfies SimulateWork,
    metric: { kind: "rate", unit: "jobs/s" },
    freshProcess: true,
    warmup: 0,
    maxRuns: 1,
  };
}

const simulations = [
  simulationCase(1000, { updates: 4, job_seconds: [3, 5], update_seconds: 8 }),
  // Longer jobs, because one process plays all workers.
  simulationCase(4000, { updates: 1, job_seconds: [16, 24], update_seconds: 32 }),
];

export const bench: Bench = {
  name: "scale",
  description:
    "Rollouts by workers over Redis on this machine: environments that wait 200 ms a turn, 8 jobs at a time; the embedded model " +
    "without waiting; and 1,000 and 4,000 simulated workers.",
  ours: { module: "ours/scale.js" },
  peers: {},
  cases: [...waitCases, ...sampleCases, ...simulations],
  derive: (ours) => {
    const speedup = (name: string, workers: number) => ours[`${name}_workers_${workers}`] / ours[`${name}_workers_1`];
    const figures = {
      ...Object.fromEntries(
        ["wait_8", "wait_64"].flatMap((name) =>
          WORKERS.slice(1).map((workers) => [`${name}_speedup_${workers}`, speedup(name, workers)]),
        ),
      ),
      sample_speedup_2: speedup("sample", 2),
    };
    return Object.fromEntries(Object.entries(figures).filter(([, value]) => Number.isFinite(value)));
  },
};
