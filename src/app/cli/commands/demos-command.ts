import { describeUnsavable } from "../../../core/describe-unsavable.js";
import { LlamaGymError } from "../../../core/errors.js";
import { choice, defineSettings, integer, number, text, type GivenSettings } from "../../../core/settings.js";
import type { Env, Info } from "../../../envs/index.js";
import { encodeUtf8 } from "../../../core/bytes.js";
import { replaceFileAtomic } from "../../../core/files/write-file-atomic.js";
import { MAX_EVAL_EPISODES } from "../../../rl/train/index.js";
import {
  agentPolicy,
  expertPolicy,
  randomPolicy,
  recordEpisodes,
  type PolicyFactory,
  type RecordedEpisode,
} from "../../runs/record-demonstrations.js";
import { readTextEnv, type TextEnv } from "../../runs/make-text-agent.js";
import type { RunEnv } from "../../runs/run-env.js";
import { checkFileWritable } from "../../runs/run-folder.js";
import { formatTable } from "../display/format-table.js";
import { reportEpisodes } from "../display/report-episodes.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
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
  await checkFileWritable(output);
  const runEnv = await resolveRunEnv(name, args);
  const env = await runEnv.open();
  const textEnv = await readTextEnv(env, runEnv.id).finally(async () => env.close());
  reporter.handleInterrupts("Finishing these episodes, then saving. Press Ctrl-C again to quit now.");
  const summary = new DemonstrationSummary();
  let failure: LlamaGymError | undefined;
  await replaceFileAtomic(output, async (file) => {
    try {
      await record(args, runEnv, textEnv, reporter, async (episode) => {
        const isKept = episode.return >= minReturn;
        if (isKept) await file.write(encodeUtf8(`${JSON.stringify(toDemonstrationLine(env, episode))}\n`));
        summary.add(episode, isKept);
      });
    } catch (error) {
      const isSaved = error instanceof LlamaGymError && error.code === "ENV_FAILED" && summary.kept.episodes > 0;
      if (!isSaved) throw error;
      failure = error;
    }
    if (summary.kept.episodes > 0) return;
    const { episodes } = summary.recorded;
    throw new LlamaGymError(
      "INVALID_STATE",
      episodes === 0
        ? "No file written: interrupted before an episode ended."
        : `No file written: none of the ${episodes} episodes has a return >= ${minReturn}.`,
    );
  });
  reporter.print(summary.format(output));
  if (failure !== undefined) throw failure;
  return reporter.signal.aborted ? SIGINT_EXIT_CODE : 0;
}

async function record(
  args: Args,
  runEnv: RunEnv,
  textEnv: TextEnv,
  reporter: Reporter,
  receive: (episode: RecordedEpisode) => Promise<void>,
): Promise<void> {
  const { policy = "expert", episodes = 100, seed = 0 } = args;
  const progress = reportEpisodes(reporter, episodes, "Recording");
  const options = {
    episodes,
    seed,
    onEpisode: () => progress.add(1),
    onWarning: reporter.warn,
    signal: reporter.signal,
  };
  const run = async (policyFactory: PolicyFactory, numEnvs: number) =>
    recordEpisodes(async () => runEnv.open(), policyFactory, { ...options, numEnvs }, receive);
  try {
    if (policy !== "agent") {
      await run(policy === "expert" ? expertPolicy : randomPolicy, 1);
      return;
    }
    const { temperature = 1 } = args;
    const { agent } = await openAgent({ ...args, temperature }, runEnv.id, textEnv, reporter);
    try {
      await run(agentPolicy(agent, temperature === 0 ? "eval" : "train"), AGENT_NUM_ENVS);
    } finally {
      await agent.model.close();
    }
  } finally {
    progress.end();
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
 * depend on it. @throws ENV_INVALID for infos that would be read differently than they were
 * written.
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
  if (hasInfo) checkInfos(env, infos);
  return { env: env.spec?.id, return: value, messages, ...(hasInfo ? { infos } : {}) };
}

function checkInfos(env: Env, infos: readonly Info[]): void {
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

/** Counts the episodes of a recording and the completions that its file has. */
class DemonstrationSummary {
  readonly recorded = { episodes: 0, return: 0 };
  readonly kept = { episodes: 0, return: 0 };
  private readonly completions = new Map<string, number>();

  add(episode: RecordedEpisode, isKept: boolean): void {
    for (const total of isKept ? [this.recorded, this.kept] : [this.recorded]) {
      total.episodes++;
      total.return += episode.return;
    }
    if (!isKept) return;
    for (const { completion } of episode.turns)
      this.completions.set(completion, (this.completions.get(completion) ?? 0) + 1);
  }

  format(output: string): string {
    const { recorded, kept, completions } = this;
    const isPart = recorded.episodes > kept.episodes;
    const total = isPart ? ` of ${recorded.episodes} (mean return ${formatMean(recorded)})` : "";
    const turns = [...completions.values()].reduce((sum, count) => sum + count, 0);
    const rows = [...completions]
      .sort((a, b) => b[1] - a[1])
      .slice(0, MAX_TABLE_ROWS)
      .map(([completion, count]) => [completion, String(count), `${((100 * count) / turns).toFixed(1)}%`]);
    return [
      `Saved ${output}: ${kept.episodes} episodes${total}, ${turns} turns, mean return ${formatMean(kept)}.`,
      formatTable([["COMPLETION", "TURNS", ""], ...rows], [1, 2]),
    ].join("\n");
  }
}

function formatMean(total: DemonstrationSummary["kept"]): string {
  return (total.return / total.episodes).toFixed(3);
}
