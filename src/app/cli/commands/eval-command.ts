import { EXTRACTION_KINDS } from "../../../rl/rollout/extraction.js";
import { evaluate, type EvalResult } from "../../../rl/train/evaluate.js";
import { requireTextEnv } from "../../runs/make-text-agent.js";
import type { TrainConfig } from "../../runs/run-settings.js";
import { agentOptionGroups, agentOptions, openAgent, type AgentArgs } from "../options/agent-options.js";
import { resolveEnvId, envOptions, openNamedEnv, parseEnvOptions } from "../options/env-options.js";
import { EpisodeCounter } from "../display/episode-counter.js";
import { InterruptHandler, SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { print } from "../display/output.js";
import type { OptionTable, OptionValues } from "../options/parse-args.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";
import { listReferencePolicies, formatReturnsTable, type PolicyReturn } from "../reference-policies.js";

const DEFAULT_EPISODES = 1000;

const commandOptions = {
  episodes: {
    type: "number",
    integer: true,
    min: 1,
    alias: "n",
    description: `episodes to play; ${DEFAULT_EPISODES} by default`,
  },
  "num-envs": { type: "number", integer: true, min: 1, description: "games played at once; 64 by default" },
  seed: { type: "number", integer: true, min: 0, description: "the same seed gives the same episodes; 0 by default" },
  sample: { type: "flag", description: "draw replies as in training, rather than the most probable ones" },
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

const options = { ...commandOptions, ...envOptions, ...agentOptions };

type Args = AgentArgs & OptionValues<typeof commandOptions> & OptionValues<typeof envOptions>;

export const evalCommand = buildPositionalCommand(
  "eval",
  "Play many episodes with a model and tell its mean return, beside those that are known",
  [{ name: "ENV", description: "an environment, such as blackjack", required: true }],
  options,
  async (args, [name]) => evaluateModel(args as unknown as Args, await resolveEnvId(name, args)),
  { Evaluation: Object.keys(commandOptions), Environment: Object.keys(envOptions), ...agentOptionGroups },
);

async function evaluateModel(args: Args, env: string): Promise<number> {
  const makeEnv = () => openNamedEnv(env, args);
  const { agent, config } = await openAgent(args, env, await requireTextEnv(makeEnv, env));
  const interrupt = new InterruptHandler("Ending with what has been played. Once more quits at once.");
  const { episodes = DEFAULT_EPISODES, "num-envs": numEnvs, seed, sample } = args;
  const counter = new EpisodeCounter(episodes);
  try {
    const result = await evaluate(agent, makeEnv, {
      episodes,
      numEnvs,
      seed,
      mode: sample ? "train" : "eval",
      signal: interrupt.signal,
      onProgress: (_turns, ended) => counter.add(ended.length),
    });
    counter.clear();
    const references = listReferencePolicies(env, parseEnvOptions(args.option), args["max-steps"]);
    if (args.json) print(JSON.stringify({ env, ...describePolicy(args, config), ...result, references }));
    else print(formatReport(result, `${args.adapter ?? config.model}, ${sample ? "sampled" : "greedy"}`, references));
  } finally {
    counter.clear();
    interrupt.release();
    await agent.model.close();
  }
  return interrupt.isInterrupted ? SIGINT_EXIT_CODE : 0;
}

function describePolicy({ adapter, sample }: Args, { model, replies, temperature }: TrainConfig) {
  return { model, adapter: adapter ?? null, replies, temperature: sample ? temperature : 0 };
}

function formatReport(
  { episodes, meanReturn, standardError, meanLength, invalidRatio, extraction }: EvalResult,
  policy: string,
  references: readonly PolicyReturn[],
): string {
  const invalidNote = invalidRatio === 0 ? "" : `; ${(100 * invalidRatio).toFixed(1)} % of the replies meant no action`;
  return [
    formatReturnsTable([...references, { policy, meanReturn, standardError }]),
    "",
    `${episodes} episodes of ${meanLength.toFixed(1)} turns on average${invalidNote}.${describeExtraction(extraction)}`,
  ].join("\n");
}

/** How actions were found; "" where the environment's own parser found them all. */
function describeExtraction(ratios: EvalResult["extraction"]): string {
  const kinds = EXTRACTION_KINDS.filter((kind) => (ratios[`extraction/${kind}`] ?? 0) > 0);
  if (kinds.every((kind) => kind === "parser")) return "";
  const percentages = kinds.map((kind) => `${kind} ${(100 * ratios[`extraction/${kind}`]).toFixed(1)} %`);
  return `\nHow actions were found: ${percentages.join(", ")}.`;
}
