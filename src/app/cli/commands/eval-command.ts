import { join } from "node:path";
import { boolean, defineSettings, integer, type GivenSettings } from "../../../core/settings.js";
import { writeJson } from "../../../core/files/json-file.js";
import { EXTRACTION_KINDS, requireGame, closeEnvs } from "../../../rl/rollout/index.js";
import {
  evaluate,
  type EvalResult,
  evaluateExact,
  getCheckpointDir,
  MAX_EVAL_EPISODES,
  ratePlayers,
  readLeague,
} from "../../../rl/train/index.js";
import { EpisodeJudge } from "../../judge/episode-judge.js";
import { withJudge } from "../../judge/judged-env.js";
import { judgeSettings } from "../../judge/judge-settings.js";
import { EnvSupply } from "../../runs/env-supply.js";
import { readTextEnv } from "../../runs/make-text-agent.js";
import { ELO_FILE, findRunFolder } from "../../runs/run-folder.js";
import type { RunEnv } from "../../runs/run-env.js";
import type { TrainConfig } from "../../runs/run-settings.js";
import { reportEpisodes } from "../display/report-episodes.js";
import { formatEloReport } from "../elo-report.js";
import { formatExactReport } from "../exact-report.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { agentOptions, describeAgentDefaults, openAgent, type LoadedAgent } from "../options/agent-options.js";
import { defineCommand } from "../options/define-command.js";
import { envOptions, resolveRunEnv } from "../options/env-options.js";
import { toOptionName } from "../options/option-names.js";
import { readRubric } from "../options/read-rubric.js";
import { formatReturnsTable, listReferencePolicies, type PolicyReturn } from "../reference-policies.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

const DEFAULT_EPISODES = 1000;

const commandOptions = defineSettings(
  {
    episodes: integer({
      min: 1,
      max: MAX_EVAL_EPISODES,
      short: "n",
      default: DEFAULT_EPISODES,
      description: "Number of episodes.",
    }),
    numEnvs: integer({ min: 1, default: 64, description: "Number of environments stepped in parallel." }),
    seed: integer({ min: 0, default: 0, description: "Seed; the same seed gives the same episodes." }),
    sample: boolean({ description: "Sample completions as in training instead of decoding greedily." }),
    exact: boolean({
      description:
        "Compute exact results in a small game from the model's probabilities: win, draw and loss in both seats, and NashConv.",
    }),
    elo: boolean({
      description:
        "Rate the snapshots of a run in self-play, its result and random play by all-play-all, and save elo.json in the run folder.",
    }),
    json: boolean({ description: "Print one JSON object." }),
  },
  { group: "Evaluation", common: true },
);

const options = { ...commandOptions, ...envOptions, ...agentOptions, ...judgeSettings };

type Args = GivenSettings<typeof options>;

export const evalCommand = defineCommand({
  name: "eval",
  description: "Measures the mean return of a model in an environment and compares it with known policies.",
  examples: [
    { description: "Evaluate the adapter of a run", args: "eval blackjack --adapter runs/blackjack/adapter" },
    {
      description: "Compute how far a policy is from perfect play",
      args: "eval kuhn-poker --exact --adapter runs/kuhn/adapter",
    },
    {
      description: "Rate the versions of a policy from a run in self-play",
      args: "eval tic-tac-toe --elo --adapter runs/tic-tac-toe/adapter",
    },
    { description: "Evaluate a model before training", args: "eval blackjack --model embedded --action-mode choices" },
  ],
  positionals: [{ name: "ENV", description: "Environment, such as blackjack.", required: true }],
  options,
  showsCommonOptions: true,
  describeDefaults: (table, values) => describeAgentDefaults(table, values),
  run: async (args, reporter, [name]) =>
    evaluateModel({ ...args, ...(await readRubric(args.judgeRubric)) }, await resolveRunEnv(name, args), reporter),
});

async function evaluateModel(args: Args, env: RunEnv, reporter: Reporter): Promise<number> {
  if (args.temperature !== undefined && args.sample !== true)
    throw new UsageError("--temperature requires --sample; without it, the evaluation is greedy.");
  if (args.exact === true && args.elo === true) throw new UsageError("Give either --exact or --elo.");
  if (args.exact === true) return evaluateExactly(args, env, reporter);
  if (args.elo === true) return rateVersions(args, env, reporter);
  const judge = EpisodeJudge.create(args, reporter.warn);
  const envs = new EnvSupply(env, (opened) => withJudge(opened, judge));
  const { agent, config } = await openEvaluated(args, env, envs, reporter);
  reporter.handleInterrupts("Stopping; the finished episodes are evaluated. Press Ctrl-C again to quit now.");
  const { signal } = reporter;
  const { episodes = DEFAULT_EPISODES, numEnvs, seed, sample = false } = args;
  const progress = reportEpisodes(reporter, episodes);
  try {
    const result = await evaluate(agent, envs.make, {
      episodes,
      numEnvs,
      seed,
      mode: sample ? "train" : "eval",
      signal,
      onProgress: (_turns, ended) => progress.add(ended.length),
      onWarning: reporter.warn,
    });
    progress.end();
    const judgeMetrics = judge?.takeMetrics() ?? {};
    const references = listReferencePolicies(env);
    const policy = `${args.adapter ?? config.model}, ${sample ? "sampled" : "greedy"}`;
    reporter.print(
      args.json === true
        ? JSON.stringify({ env: env.id, ...describePolicy(args, config), ...result, ...judgeMetrics, references })
        : formatReport(result, policy, references) + describeJudge(judgeMetrics),
    );
  } finally {
    progress.end();
    await judge?.close();
    await agent.model.close();
  }
  return signal.aborted ? SIGINT_EXIT_CODE : 0;
}

/** Prints exact values of a model in a game. */
async function evaluateExactly(args: Args, runEnv: RunEnv, reporter: Reporter): Promise<number> {
  const option = (["episodes", "numEnvs", "seed", "sample"] as const).find((name) => args[name] !== undefined);
  if (option !== undefined)
    throw new UsageError(`--exact plays no games, so --${toOptionName(option)} has no effect. Leave one of them out.`);
  const env = await runEnv.open();
  try {
    requireGame(env);
    const { agent, config } = await openAgent(args, runEnv.id, await readTextEnv(env, runEnv.id), reporter);
    try {
      const values = await evaluateExact(agent, env);
      reporter.print(
        args.json === true
          ? JSON.stringify({ env: runEnv.id, ...describePolicy(args, config), ...values })
          : formatExactReport(values),
      );
    } finally {
      await agent.model.close();
    }
  } finally {
    await closeEnvs([env], reporter.warn);
  }
  return 0;
}

/** Prints the ratings of a run's versions. */
async function rateVersions(args: Args, runEnv: RunEnv, reporter: Reporter): Promise<number> {
  if (args.sample !== undefined) throw new UsageError("--elo rates policies as they sample; leave --sample out.");
  const run = await findRunFolder(args.adapter ?? args.model);
  if (run === undefined)
    throw new UsageError(
      "--elo rates the versions of a run in self-play: name its result, as in --adapter runs/x/adapter.",
    );
  const versions = await readLeague(getCheckpointDir(run));
  if (versions.length === 0)
    throw new UsageError(
      `${run} has no snapshots in its latest checkpoint. They are taken in self-play with past opponents (--opponents self,past).`,
    );
  const env = await runEnv.open();
  try {
    requireGame(env);
    const { agent, config } = await openAgent(args, runEnv.id, await readTextEnv(env, runEnv.id), reporter);
    try {
      const { causalLM } = agent.model;
      const { data } = await causalLM.runtime.read(causalLM.parameters.values);
      const named = versions.map(({ updates, values }) => ({ name: `update ${updates}`, values }));
      const result = { name: "result", values: (data as Float32Array).slice() };
      const ladder = await ratePlayers(agent, async () => runEnv.open(), [...named, result], {
        games: args.episodes,
        numEnvs: args.numEnvs,
        seed: args.seed,
        signal: reporter.signal,
        onWarning: reporter.warn,
      });
      await writeJson(join(run, ELO_FILE), ladder);
      reporter.print(
        args.json === true
          ? JSON.stringify({ env: runEnv.id, ...describePolicy(args, config), ...ladder })
          : formatEloReport(ladder),
      );
    } finally {
      await agent.model.close();
    }
  } finally {
    await closeEnvs([env], reporter.warn);
  }
  return 0;
}

async function openEvaluated(args: Args, env: RunEnv, envs: EnvSupply, reporter: Reporter): Promise<LoadedAgent> {
  try {
    return await openAgent(args, env.id, await envs.read(readTextEnv), reporter);
  } catch (error) {
    await envs.close();
    throw error;
  }
}

function describePolicy({ adapter, sample }: Args, { model, actionMode, temperature }: TrainConfig) {
  return { model, adapter: adapter ?? null, actionMode, temperature: sample === true ? temperature : 0 };
}

function formatReport(
  { episodes, meanReturn, standardError, meanLength, successRate, invalidRatio, extraction }: EvalResult,
  policy: string,
  references: readonly PolicyReturn[],
): string {
  const invalidNote =
    invalidRatio === 0 ? "" : `; ${(100 * invalidRatio).toFixed(1)}% of the completions had no valid action`;
  const success = successRate === undefined ? "" : `, ${(100 * successRate).toFixed(1)}% successful`;
  return [
    formatReturnsTable([...references, { policy, meanReturn, standardError }]),
    "",
    `${episodes} episodes${success}, ${meanLength.toFixed(1)} turns on average${invalidNote}.${describeExtraction(extraction)}`,
  ].join("\n");
}

/** Describes what a judge did; "" without one. */
function describeJudge(metrics: Readonly<Record<string, number>>): string {
  const {
    "judge/score_mean": mean,
    "judge/calls": calls,
    "judge/cached": cached,
    "judge/failures": failures,
  } = metrics;
  if (calls === undefined) return "";
  const score = mean === undefined ? "no score" : `mean score ${mean.toFixed(2)}`;
  return `\nJudge: ${score}, ${calls} requests, ${cached} cached, ${failures} failures.`;
}

/** Describes how actions were extracted; "" if the environment parsed them all. */
function describeExtraction(ratios: EvalResult["extraction"]): string {
  const kinds = EXTRACTION_KINDS.filter((kind) => (ratios[`extraction/${kind}`] ?? 0) > 0);
  if (kinds.every((kind) => kind === "parser")) return "";
  const percentages = kinds.map((kind) => `${kind} ${(100 * ratios[`extraction/${kind}`]).toFixed(1)}%`);
  return `\nAction extraction: ${percentages.join(", ")}.`;
}
