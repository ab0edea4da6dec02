import { extractionKinds } from "../rollout/extraction.js";
import { evaluate, type Evaluation } from "../training/evaluate.js";
import { readableEnv } from "../training/make-agent.js";
import type { TrainConfig } from "../training/settings.js";
import { agentGroups, agentOptions, openAgent, type AgentValues } from "./agent-options.js";
import { envId, envOptions, openEnv, readEnvOptions } from "./env-options.js";
import { EpisodeCounter } from "./episode-counter.js";
import { Interrupt, INTERRUPTED } from "./interrupt.js";
import { print } from "./output.js";
import type { OptionTable, OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";
import { referencePolicies, returnsTable, type PolicyReturn } from "./reference-policies.js";

const DEFAULT_EPISODES = 1000;

const ownOptions = {
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

const options = { ...ownOptions, ...envOptions, ...agentOptions };

type Values = AgentValues & OptionValues<typeof ownOptions> & OptionValues<typeof envOptions>;

export const evalCommand = positionalCommand(
  "eval",
  "Play many episodes with a model and tell its mean return, beside those that are known",
  [{ name: "ENV", description: "an environment, such as blackjack", required: true }],
  options,
  async (values, [name]) => evaluateModel(values as unknown as Values, envId(name)),
  { Evaluation: Object.keys(ownOptions), Environment: Object.keys(envOptions), ...agentGroups },
);

async function evaluateModel(values: Values, env: string): Promise<number> {
  const makeEnv = () => openEnv(env, values);
  const { agent, config } = await openAgent(values, env, await readableEnv(makeEnv, env));
  const interrupt = new Interrupt("Ending with what has been played. Once more quits at once.");
  const { episodes = DEFAULT_EPISODES, "num-envs": numEnvs, seed, sample } = values;
  const counter = new EpisodeCounter(episodes);
  try {
    const result = await evaluate(agent, makeEnv, {
      episodes,
      numEnvs,
      seed,
      mode: sample ? "train" : "eval",
      signal: interrupt.signal,
      onRound: (_turns, ended) => counter.add(ended.length),
    });
    counter.end();
    const references = referencePolicies(env, readEnvOptions(values.option), values["max-steps"]);
    if (values.json) print(JSON.stringify({ env, ...described(values, config), ...result, references }));
    else print(report(result, `${values.adapter ?? config.model}, ${sample ? "sampled" : "greedy"}`, references));
  } finally {
    counter.end();
    interrupt.release();
    await agent.model.close();
  }
  return interrupt.hasCome ? INTERRUPTED : 0;
}

function described({ adapter, sample }: Values, { model, replies, temperature }: TrainConfig) {
  return { model, adapter: adapter ?? null, replies, temperature: sample ? temperature : 0 };
}

function report(
  { episodes, meanReturn, standardError, meanLength, invalidRatio, extraction }: Evaluation,
  policy: string,
  references: readonly PolicyReturn[],
): string {
  const invalid = invalidRatio === 0 ? "" : `; ${(100 * invalidRatio).toFixed(1)} % of the replies meant no action`;
  return [
    returnsTable([...references, { policy, meanReturn, standardError }]),
    "",
    `${episodes} episodes of ${meanLength.toFixed(1)} turns on average${invalid}.${howFound(extraction)}`,
  ].join("\n");
}

/** How actions were found; "" where the environment's own parser found them all. */
function howFound(shares: Evaluation["extraction"]): string {
  const kinds = extractionKinds.filter((kind) => (shares[`extraction/${kind}`] ?? 0) > 0);
  if (kinds.every((kind) => kind === "parser")) return "";
  const shown = kinds.map((kind) => `${kind} ${(100 * shares[`extraction/${kind}`]).toFixed(1)} %`);
  return `\nHow actions were found: ${shown.join(", ")}.`;
}
