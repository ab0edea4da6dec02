import {
  agentPlayers,
  demonstrate,
  expertEnvOptions,
  expertPlayers,
  randomPlayers,
  type PlayedEpisode,
  type Players,
} from "../training/demonstrate.js";
import { readable } from "../training/make-agent.js";
import { randomAction } from "../agent/random-action.js";
import { TextAgent } from "../agent/text-agent.js";
import { makeAsync, type Env } from "../envs/index.js";
import type { Info } from "../envs/info.js";
import { writeFileAtomic } from "../files/index.js";
import type { LanguageModel } from "../generation/language-model.js";
import { findModel } from "../models/registry/index.js";
import { envId, envOptions, fileNamePart, readEnvOptions } from "./env-options.js";
import { openingOptions } from "./generation-options.js";
import { openModel } from "./open-model.js";
import { print, table } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";

const options = {
  policy: {
    type: "choice",
    choices: ["expert", "random", "agent"],
    description: "who plays: the environment's scripted expert (the default), random actions, or a language model",
  },
  episodes: { type: "number", integer: true, min: 1, description: "episodes; 100 by default" },
  output: { type: "text", hint: "file", description: "the JSONL file that is written; demos-ENV.jsonl by default" },
  "min-return": { type: "number", description: "leave out episodes that brought less" },
  seed: { type: "number", integer: true, min: 0, description: "the same seed gives the same file; 0 by default" },
  ...envOptions,
  model: { type: "text", hint: "path or id", description: "the model of the policy agent; embedded by default" },
  ...openingOptions,
  replies: { type: "choice", choices: ["free", "choices"], description: "hold the agent's replies to the listed ones" },
  temperature: { type: "number", min: 0, description: "of the agent's replies; 1 by default, 0 is greedy" },
  "max-new-tokens": { type: "number", integer: true, min: 1, description: "tokens of a reply; 32 by default" },
} as const satisfies OptionTable;

type Values = OptionValues<typeof options>;

export const demosCommand = positionalCommand(
  "demos",
  "Play episodes and keep them as demonstrations, for llamagym train --sft-warm-start and llamagym sft",
  [{ name: "ENV", description: "an environment, such as blackjack or FrozenLake-v1", required: true }],
  options,
  async (values, [name]) => {
    const { policy = "expert", episodes = 100, seed = 0, output = `demos-${fileNamePart(name)}.jsonl` } = values;
    checkPolicyOptions(values);
    const id = envId(name);
    const given = readEnvOptions(values.option);
    const limit = values["max-steps"] === undefined ? {} : { maxEpisodeSteps: values["max-steps"] };
    const chosen = { ...(policy === "expert" ? expertEnvOptions(id, given) : given), ...limit };
    const makeEnv = async () => makeAsync(id, chosen);
    const env = await makeEnv();
    await env.close();
    readable(env, name);
    const play = async (players: Players, numEnvs: number) =>
      demonstrate(makeEnv, players, { episodes, seed, numEnvs });
    const played =
      policy === "agent"
        ? await withAgent(env, values, async (agent) => play(agentPlayers(agent, modeOf(values)), 16))
        : await play(policy === "expert" ? expertPlayers : randomPlayers, 1);
    const { "min-return": least = -Infinity } = values;
    const kept = played.filter((episode) => episode.return >= least);
    if (kept.length === 0) {
      process.stderr.write(`None of the ${played.length} episodes brought ${least}; nothing was written.\n`);
      return 1;
    }
    await writeFileAtomic(output, kept.map((episode) => `${JSON.stringify(lineOf(env, episode))}\n`).join(""));
    report(played, kept, output);
    return 0;
  },
);

function checkPolicyOptions(values: Values): void {
  if (values.policy === "agent") return;
  const other = (["model", "adapter", "replies", "temperature", "max-new-tokens"] as const).find(
    (name) => values[name] !== undefined,
  );
  if (other !== undefined) throw new UsageError(`--${other} belongs to --policy agent.`);
}

const modeOf = ({ temperature }: Values) => (temperature === 0 ? "eval" : "train");

async function withAgent(
  { text, actionSpace }: Env,
  values: Values,
  play: (agent: TextAgent) => Promise<PlayedEpisode[]>,
): Promise<PlayedEpisode[]> {
  const { model: name = "embedded", replies, temperature = 1, "max-new-tokens": maxNewTokens, seed } = values;
  const model: LanguageModel = await openModel(name, values);
  try {
    const agent = new TextAgent(model, text!, {
      generation: { maxNewTokens, temperature: temperature === 0 ? 1 : temperature },
      replies,
      historyTurns: 0,
      replyPrefix: findModel(name)?.model.defaults.replyPrefix,
      seed,
      invalidReply: { fallback: randomAction({ text, actionSpace }) },
    });
    return await play(agent);
  } finally {
    await model.close();
  }
}

/** An episode as a conversation; the environment's info is kept where a reply's meaning may depend on it. */
function lineOf(env: Env, { systemPrompt, turns, return: value }: PlayedEpisode): Record<string, unknown> {
  const messages = [
    { role: "system", content: systemPrompt },
    ...turns.flatMap(({ shown, reply }) => [
      { role: "user", content: shown },
      { role: "assistant", content: reply },
    ]),
  ];
  const infos = turns.map(({ info = {} }) => withoutSolution(info));
  const hasInfo = typeof env.text?.choices === "function" && infos.some((info) => Object.keys(info).length > 0);
  return { env: env.spec?.id, return: value, messages, ...(hasInfo ? { infos } : {}) };
}

/** What only the expert sees is no part of a demonstration. */
function withoutSolution(info: Info): Info {
  return Object.fromEntries(Object.entries(info).filter(([name]) => name !== "policyCommands"));
}

function report(played: readonly PlayedEpisode[], kept: readonly PlayedEpisode[], output: string): void {
  const turns = kept.flatMap((episode) => episode.turns);
  const mean = (episodes: readonly PlayedEpisode[]) =>
    (episodes.reduce((sum, episode) => sum + episode.return, 0) / episodes.length).toFixed(3);
  const left = played.length === kept.length ? "" : ` of ${played.length} (mean return ${mean(played)})`;
  print(`${output}: ${kept.length} episodes${left}, ${turns.length} turns, mean return ${mean(kept)}.`);
  const counts = new Map<string, number>();
  for (const { reply } of turns) counts.set(reply, (counts.get(reply) ?? 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  const share = (count: number) => `${((100 * count) / turns.length).toFixed(1)}%`;
  print(table([["REPLY", "TURNS", ""], ...rows.map(([reply, count]) => [reply, String(count), share(count)])], [1, 2]));
}
