import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { generateRandomMap } from "../../src/envs/toy-text/frozen-lake-map.js";
import { replayRandom, type RandomCase } from "./gym/replay-random.js";
import { compareError, compareSpec, type ErrorCase, type RegistryCase } from "./gym/compare-registry.js";
import { replaySpace, type SpaceCase } from "./gym/replay-space.js";
import { replayTrajectory, type TrajectoryCase } from "./gym/replay-trajectory.js";
import { largestDifference, type Json } from "./gym/json-values.js";
import { replayVector, type VectorCase } from "./gym/replay-vector.js";
import { replayWrapper, type WrapperCase } from "./gym/replay-wrapper.js";
import type { ParityOptions, ParityReport } from "./parity-report.js";

/** Rewards are doubles, whose last digits depend on the C library; everything else is equal. */
const TOLERANCE = 1e-12;

interface MapCase {
  readonly size: number;
  readonly p: number;
  readonly seed: number;
  readonly desc: string[];
}

type Comparison = { readonly error: number; readonly path: string };
type CaseRunner = {
  readonly name: (recorded: never) => string;
  readonly run: (recorded: never) => Comparison | Promise<Comparison>;
};

const formatKwargs = (options: { [key: string]: Json }) =>
  Object.keys(options).length === 0 ? "" : ` ${JSON.stringify(options)}`;

const caseRunners: Readonly<Record<string, CaseRunner>> = {
  trajectory: {
    name: ({ env_id, kwargs: options, seed }: TrajectoryCase) => `${env_id}${formatKwargs(options)} seed ${seed}`,
    run: replayTrajectory,
  },
  rng: {
    name: ({ seed }: RandomCase) => `seed ${seed}`,
    run: (recorded: RandomCase) =>
      largestDifference(replayRandom(recorded) as unknown as Json, recorded as unknown as Json),
  },
  space: {
    name: ({ repr, seed }: SpaceCase) => `${repr.replace(/\s+/g, " ").slice(0, 80)} seed ${seed}`,
    run: replaySpace,
  },
  wrapper: {
    name: ({ env_id, wrappers, seed }: WrapperCase) =>
      `${env_id} in ${wrappers.map(([name]) => name).join(", ")} seed ${seed}`,
    run: replayWrapper,
  },
  vector: {
    name: ({ env_id, autoreset_mode, num_envs, seed }: VectorCase) =>
      `${num_envs} ${env_id} ${autoreset_mode} seed ${seed}`,
    run: replayVector,
  },
  map: {
    name: ({ size, p, seed }: MapCase) => `size ${size} p ${p} seed ${seed}`,
    run: ({ size, p, seed, desc }: MapCase) => largestDifference(generateRandomMap(size, p, seed), desc),
  },
  registry: { name: ({ id }: RegistryCase) => id, run: compareSpec },
  error: {
    name: ({ call }: ErrorCase) => call,
    run: async (recorded: ErrorCase) => {
      const problem = await compareError(recorded);
      return problem === undefined ? { error: 0, path: "" } : { error: Infinity, path: problem };
    },
  },
};

/** Replays Gymnasium's recordings in `directory`: one line for each case. */
export async function runGymParity(directory: string, report: ParityReport, _options: ParityOptions): Promise<void> {
  const files = (await readdir(directory)).filter((file) => file.endsWith(".json")).sort();
  for (const file of files) {
    const { kind, cases } = JSON.parse(await readFile(join(directory, file), "utf8")) as {
      kind: string;
      cases: never[];
    };
    const replay = caseRunners[kind];
    if (replay === undefined) {
      report.skip(`gym/${file}`, `kind ${kind} is not known`);
      continue;
    }
    for (const recorded of cases) await runCase(`gym/${file}`, replay, recorded, report);
  }
}

async function runCase(file: string, replay: CaseRunner, recorded: never, report: ParityReport): Promise<void> {
  let name = file;
  try {
    name = `${file} ${replay.name(recorded)}`;
    const { error, path } = await replay.run(recorded);
    if (error <= TOLERANCE) report.checkWithin(name, error, TOLERANCE);
    else report.checkEqual(name, false, `by ${error.toExponential(1)} at ${path}`);
  } catch (error) {
    report.error(name, error);
  }
}
