import { checkOptions } from "../../core/settings.js";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { formatNumber } from "../../core/format.js";
import { openEnv, register, type Env } from "../../envs/index.js";
import { evaluate } from "../../rl/train/index.js";
import { probeEnv, type ProbeResult } from "./probe-env.js";
import { startRun } from "./run.js";
import type { TrainOptions } from "./run-settings.js";

/** Options of `expectToLearn`. */
export interface ExpectToLearnOptions {
  /** Mean return that training must reach. Default: clearly better than random play. */
  readonly reward?: number;
  /** Minutes of training at most, after which the mean return is compared. Default 1. */
  readonly minutes?: number;
  /** Default 0. */
  readonly seed?: number;
  /** Settings of `llamagym train`. */
  readonly train?: Partial<Omit<TrainOptions, "env" | "seed">>;
}

/** What training reached. */
export interface ExpectToLearnResult {
  /** Mean return of the last 100 episodes, or of a greedy evaluation if that is higher. */
  readonly reward: number;
  /** Mean return of random play. */
  readonly random: number;
  readonly turns: number;
  readonly seconds: number;
}

/** Episodes of a greedy evaluation after training. */
const EVAL_EPISODES = 64;
/** Episodes whose mean return counts, so that luck does not pass. */
const MIN_EPISODES = 50;

let count = 0;

/**
 * Trains the embedded model in an environment until its mean return reaches `reward`, to be called
 * in a test. Before that, random play looks for what keeps any agent from learning: episodes that
 * never end, ignored seeds, and actions that change nothing.
 * @throws ENV_INVALID with the reason, or with what was reached; and what the environment and
 * `startRun` throw.
 */
export async function expectToLearn(
  env: string | (() => Env),
  options: ExpectToLearnOptions = {},
): Promise<ExpectToLearnResult> {
  checkOptions("expectToLearn", options, { reward: true, minutes: true, seed: true, train: true });
  const { reward, minutes = 1, seed = 0, train = {} } = options;
  if (!(minutes > 0)) throw invalidArgument(`\`minutes\` must be a number > 0, got ${String(minutes)}.`);
  const id = typeof env === "string" ? env : `ExpectToLearn-v${count++}`;
  if (typeof env !== "string") register({ id, entryPoint: env });
  const name = typeof env === "string" ? env : "The environment";
  const opened = await openEnv(id, train.envOptions ?? {});
  const probe = await probeEnv(opened, seed, { name }).finally(async () => opened.close());
  const target = reward ?? probe.meanReturn + 4 * probe.standardError + 1e-6;
  const reached = await trainUntil(id, { target, minutes, seed, train });
  if (reached.reward >= target) return { ...reached, random: probe.meanReturn };
  throw new LlamaGymError("ENV_INVALID", describeFailure(name, reached, target, probe));
}

async function trainUntil(
  env: string,
  { target, minutes, seed, train }: Required<Omit<ExpectToLearnOptions, "reward">> & { readonly target: number },
): Promise<Omit<ExpectToLearnResult, "random">> {
  const folder = await mkdtemp(join(tmpdir(), "expect-to-learn-"));
  const start = performance.now();
  try {
    const options = { device: "cpu", rollouts: "none", ...train, env, seed } as const;
    const run = await startRun(options, join(folder, "run"));
    try {
      let best = -Infinity;
      const { state } = await run.train({
        signal: AbortSignal.timeout(60_000 * minutes),
        onUpdate: async ({ state: { episodes }, metrics }) => {
          const mean = metrics["rollout/ep_rew_mean"];
          best = episodes >= MIN_EPISODES && Number.isFinite(mean) ? mean : best;
          return { stop: best >= target };
        },
      });
      const seconds = () => (performance.now() - start) / 1000;
      if (best < target) {
        const { meanReturn } = await evaluate(run.agent, run.makeEnv, { episodes: EVAL_EPISODES, seed });
        best = Math.max(best, meanReturn);
      }
      return { reward: best, turns: state.turns, seconds: seconds() };
    } finally {
      await run.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function describeFailure(
  name: string,
  { reward, turns, seconds }: Omit<ExpectToLearnResult, "random">,
  target: number,
  { meanReturn, maxReturn, hasConstantObservations }: ProbeResult,
): string {
  const causes = [
    ...(hasConstantObservations
      ? [
          "All observations of random play have the same text, so the agent cannot tell states apart: see formatObservation.",
        ]
      : []),
    ...(maxReturn < target
      ? [
          `The best of the random episodes returned ${formatNumber(maxReturn)}: check the sign and the size of the reward.`,
        ]
      : []),
    ...(reward < meanReturn
      ? ["Training is worse than random play: the prompt may lack what the next action depends on (historyTurns)."]
      : []),
  ];
  return (
    `${name} was not learned: the mean return is ${formatNumber(reward)} after ${turns} turns in ${Math.round(seconds)} seconds, below ` +
    `${formatNumber(target)}. Random play has ${formatNumber(meanReturn)}. ${causes.length > 0 ? causes.join(" ") : "Give it more `minutes`, or a lower `reward`."}`
  );
}
