import { describeUnsavable } from "../../../core/describe-unsavable.js";
import { LlamaGymError } from "../../../core/errors.js";
import { choice, defineSettings, integer, number, text, type GivenSettings } from "../../../core/settings.js";
import type { Env, Info } from "../../../envs/index.js";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { MAX_EVAL_EPISODES } from "../../../rl/train/index.js";
import {
  agentPolicy,
  expertPolicy,
  randomPolicy,
  recordDemonstrations,
  type PolicyFactory,
  type RecordedEpisode,
} from "../../runs/record-demonstrations.js";
import { readTextEnv } from "../../runs/make-text-agent.js";
import type { RunEnv } from "../../runs/run-env.js";
import { formatTable } from "../display/format-table.js";
import { agentOptions, describeAgentDefaults, openAgent } from "../options/agent-options.js";
import { toFileName } from "../options/default-output.js";
import { defineCommand } from "../options/define-command.js";
import { envOptions, resolveRunEnv } from "../options/env-options.js";
import { generationSettings } from "../../../generation/index.js";
import { toOptionName } from "../options/option-names.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

/** Episodes that an agent plays in parallel. */
const AGENT_NUM_ENVS = 16;
/** Rows of the table of completions. */
const MAX_TABLE_ROWS = 12;

const commandOptions = defineSettings(
  {
    policy: choice({
      choices: ["expert", "random", "agent"],
      default: "expert",
      description: "What acts: the environment's scripted expert, random actions, or a language model.",
    }),
    episodes: integer({ min: 1, max: MAX_EVAL_EPISODES, default: 100, description: "Number of episodes to record." }),
    output: text({ valueName: "file", defaultText: "demos-ENV.jsonl", description: "JSONL file to write." }),
    minReturn: number({ description: "Leave out episodes with a lower return." }),
    seed: integer({ min: 0, default: 0, description: "Seed; the same seed gives the same file." }),
  },
  { group: "Demonstrations", common: true },
);

/** Options of --policy agent. */
const agentOnlyOptions = {
  ...agentOptions,
  temperature: number({
    ...generationSettings.temperature,
    group: "With --policy agent",
    common: true,
    default: 1,
    description: "Sampling temperature of the agent's completions; 0 is greedy.",
  }),
};

const options = { ...commandOptions, ...envOptions, ...agentOnlyOptions };

type Args = GivenSettings<typeof options>;

export const demosCommand = defineCommand({
  name: "demos",
  description: "Records episodes as demonstrations, for llamagym train --sft-warm-start and llamagym sft --data.",
  examples: [
    { description: "Record the environment's expert", args: "demos blackjack --episodes 500" },
    {
      description: "Record the best episodes of a trained agent",
      args: "demos blackjack --policy agent --adapter runs/blackjack/adapter --min-return 1",
    },
  ],
  positionals: [{ name: "ENV", description: "Environment, such as blackjack or FrozenLake-v1.", required: true }],
  options,
  showsCommonOptions: true,
  describeDefaults: (table, values) => describeAgentDefaults(table, values),
  run: async (args, reporter, [name]) => recordToFile(args, name, reporter),
});

async function recordToFile(args: Args, name: string, reporter: Reporter): Promise<number> {
  checkPolicyOptions(args);
  const { output = `demos-${toFileName(name)}.jsonl`, minReturn = -Infinity } = args;
  const { env, recorded } = await record(args, await resolveRunEnv(name, args), reporter);
  const kept = recorded.filter((episode) => episode.return >= minReturn);
  if (kept.length === 0) {
    reporter.warn(`No file written: none of the ${recorded.length} episodes has a return >= ${minReturn}.`);
    return 1;
  }
  const lines = kept.map((episode) => toDemonstrationLine(env, episode));
  for (const line of lines) checkInfos(env, line);
  await writeFileAtomic(output, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  reporter.print(formatReport(recorded, kept, output));
  return 0;
}

async function record(
  args: Args,
  runEnv: RunEnv,
  reporter: Reporter,
): Promise<{ readonly env: Env; readonly recorded: readonly RecordedEpisode[] }> {
  const { policy = "expert", episodes = 100, seed = 0 } = args;
  const { id } = runEnv;
  const makeEnv = async () => runEnv.open();
  const env = await makeEnv();
  const textEnv = await readTextEnv(env, id).finally(async () => env.close());
  const run = async (policyFactory: PolicyFactory, numEnvs: number) =>
    recordDemonstrations(makeEnv, policyFactory, { episodes, seed, numEnvs, onWarning: reporter.warn });
  if (policy !== "agent") return { env, recorded: await run(policy === "expert" ? expertPolicy : randomPolicy, 1) };
  const { temperature = 1 } = args;
  const isGreedy = temperature === 0;
  const { agent } = await openAgent({ ...args, temperature }, id, textEnv, reporter);
  try {
    return { env, recorded: await run(agentPolicy(agent, isGreedy ? "eval" : "train"), AGENT_NUM_ENVS) };
  } finally {
    await agent.model.close();
  }
}

function checkPolicyOptions(args: Args): void {
  if (args.policy === "agent") return;
  const names = Object.keys(agentOnlyOptions) as (keyof typeof agentOnlyOptions)[];
  const misplaced = names.find((name) => args[name] !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${toOptionName(misplaced)} requires --policy agent.`);
}

/**
 * Converts an episode to a conversation, with the environment's info where its action choices may
 * depend on it.
 */
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

/** @throws ENV_INVALID for infos that would be read differently than they were written. */
function checkInfos(env: Env, { infos }: Record<string, unknown>): void {
  const problem = describeUnsavable({ infos });
  if (problem === undefined) return;
  throw new LlamaGymError(
    "ENV_INVALID",
    `No file written: of ${env.spec?.id ?? "the environment"}, ${problem}. Return finite numbers, or null, in infos.`,
  );
}

/** Removes the info that only the expert may read. */
function withoutSolution(info: Info): Info {
  return Object.fromEntries(Object.entries(info).filter(([name]) => name !== "policyCommands"));
}

function formatReport(recorded: readonly RecordedEpisode[], kept: readonly RecordedEpisode[], output: string): string {
  const turns = kept.flatMap((episode) => episode.turns);
  const total = recorded.length === kept.length ? "" : ` of ${recorded.length} (mean return ${meanReturn(recorded)})`;
  const counts = new Map<string, number>();
  for (const { completion } of turns) counts.set(completion, (counts.get(completion) ?? 0) + 1);
  const rows = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, MAX_TABLE_ROWS)
    .map(([completion, count]) => [completion, String(count), `${((100 * count) / turns.length).toFixed(1)}%`]);
  return [
    `Saved ${output}: ${kept.length} episodes${total}, ${turns.length} turns, mean return ${meanReturn(kept)}.`,
    formatTable([["COMPLETION", "TURNS", ""], ...rows], [1, 2]),
  ].join("\n");
}

function meanReturn(episodes: readonly RecordedEpisode[]): string {
  return (episodes.reduce((sum, episode) => sum + episode.return, 0) / episodes.length).toFixed(3);
}
