import {
  agentPolicy,
  recordDemonstrations,
  expertPolicy,
  randomPolicy,
  type RecordedEpisode,
  type PolicyFactory,
} from "../../runs/record-demonstrations.js";
import { asTextEnv } from "../../runs/make-text-agent.js";
import { randomAction } from "../../../rl/agent/random-action.js";
import { TextAgent } from "../../../rl/agent/text-agent.js";
import { openEnv, type Env } from "../../../envs/index.js";
import type { Info } from "../../../envs/info.js";
import { writeFileAtomic } from "../../../models/files/index.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import { findModel } from "../../../models/registry/index.js";
import { resolveEnvId, envOptions, toFileName, parseEnvOptions } from "../options/env-options.js";
import { modelOptions } from "../options/generation-options.js";
import { openModel } from "../open-model.js";
import { print, formatTable } from "../display/output.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";

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
  ...modelOptions,
  replies: { type: "choice", choices: ["free", "choices"], description: "hold the agent's replies to the listed ones" },
  temperature: { type: "number", min: 0, description: "of the agent's replies; 1 by default, 0 is greedy" },
  "max-new-tokens": { type: "number", integer: true, min: 1, description: "tokens of a reply; 32 by default" },
} as const satisfies OptionTable;

type Args = OptionValues<typeof options>;

export const demosCommand = buildPositionalCommand(
  "demos",
  "Play episodes and keep them as demonstrations, for llamagym train --sft-warm-start and llamagym sft",
  [{ name: "ENV", description: "an environment, such as blackjack or FrozenLake-v1", required: true }],
  options,
  async (args, [name]) => {
    const { policy = "expert", episodes = 100, seed = 0, output = `demos-${toFileName(name)}.jsonl` } = args;
    checkPolicyOptions(args);
    const id = await resolveEnvId(name, args);
    const envOptionValues = parseEnvOptions(args.option);
    const stepLimit = args["max-steps"] === undefined ? {} : { maxEpisodeSteps: args["max-steps"] };
    const makeOptions = { ...envOptionValues, ...stepLimit };
    const makeEnv = async () => openEnv(id, makeOptions);
    const env = await makeEnv();
    await env.close();
    asTextEnv(env, name);
    const record = async (policyFactory: PolicyFactory, numEnvs: number) =>
      recordDemonstrations(makeEnv, policyFactory, { episodes, seed, numEnvs });
    const recorded =
      policy === "agent"
        ? await withAgent(env, args, async (agent) => record(agentPolicy(agent, samplingMode(args)), 16))
        : await record(policy === "expert" ? expertPolicy : randomPolicy, 1);
    const { "min-return": minReturn = -Infinity } = args;
    const kept = recorded.filter((episode) => episode.return >= minReturn);
    if (kept.length === 0) {
      process.stderr.write(`None of the ${recorded.length} episodes brought ${minReturn}; nothing was written.\n`);
      return 1;
    }
    await writeFileAtomic(
      output,
      kept.map((episode) => `${JSON.stringify(toDemonstrationLine(env, episode))}\n`).join(""),
    );
    printReport(recorded, kept, output);
    return 0;
  },
);

function checkPolicyOptions(args: Args): void {
  if (args.policy === "agent") return;
  const misplaced = (["model", "adapter", "replies", "temperature", "max-new-tokens"] as const).find(
    (name) => args[name] !== undefined,
  );
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} belongs to --policy agent.`);
}

const samplingMode = ({ temperature }: Args) => (temperature === 0 ? "eval" : "train");

async function withAgent(
  { text, actionSpace }: Env,
  args: Args,
  record: (agent: TextAgent) => Promise<RecordedEpisode[]>,
): Promise<RecordedEpisode[]> {
  const { model: name = "embedded", replies, temperature = 1, "max-new-tokens": maxNewTokens, seed } = args;
  const model: LanguageModel = await openModel(name, args);
  try {
    const agent = new TextAgent(model, text!, {
      generation: { maxNewTokens, temperature: temperature === 0 ? 1 : temperature },
      replies,
      historyTurns: 0,
      replyPrefix: findModel(name)?.model.defaults.replyPrefix,
      seed,
      invalidReply: { fallback: randomAction({ text, actionSpace }) },
    });
    return await record(agent);
  } finally {
    await model.close();
  }
}

/** An episode as a conversation; the environment's info is kept where a reply's meaning may depend on it. */
function toDemonstrationLine(
  env: Env,
  { systemPrompt, turns, return: value }: RecordedEpisode,
): Record<string, unknown> {
  const messages = [
    { role: "system", content: systemPrompt },
    ...turns.flatMap(({ observationText, completion }) => [
      { role: "user", content: observationText },
      { role: "assistant", content: completion },
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

function printReport(recorded: readonly RecordedEpisode[], kept: readonly RecordedEpisode[], output: string): void {
  const turns = kept.flatMap((episode) => episode.turns);
  const meanReturn = (episodes: readonly RecordedEpisode[]) =>
    (episodes.reduce((sum, episode) => sum + episode.return, 0) / episodes.length).toFixed(3);
  const outOf = recorded.length === kept.length ? "" : ` of ${recorded.length} (mean return ${meanReturn(recorded)})`;
  print(`${output}: ${kept.length} episodes${outOf}, ${turns.length} turns, mean return ${meanReturn(kept)}.`);
  const counts = new Map<string, number>();
  for (const { completion } of turns) counts.set(completion, (counts.get(completion) ?? 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  const percent = (count: number) => `${((100 * count) / turns.length).toFixed(1)}%`;
  print(
    formatTable(
      [["REPLY", "TURNS", ""], ...rows.map(([reply, count]) => [reply, String(count), percent(count)])],
      [1, 2],
    ),
  );
}
