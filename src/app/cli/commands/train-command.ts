import { readJson } from "../../../models/files/index.js";
import { evaluate, type EvalResult } from "../../../rl/train/evaluate.js";
import { CHANGEABLE_ON_RESUME, resumeRun, startRun, type Run, type RunOptions } from "../../runs/run.js";
import { trainSettings, type TrainOptions } from "../../runs/run-settings.js";
import { resolveEnvId, envOptions, toFileName, parseEnvOptions } from "../options/env-options.js";
import { EpisodeCounter } from "../display/episode-counter.js";
import { InterruptHandler, SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { withModelAdvice } from "../with-model-advice.js";
import { print } from "../display/output.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";
import { DownloadProgressBar } from "../display/download-progress-bar.js";
import { listReferencePolicies, formatReturnsTable, type PolicyReturn } from "../reference-policies.js";
import { explicitSettings, toOptionName, optionsFromSettings } from "../options/setting-options.js";
import { trainOptionGroups } from "../options/train-option-groups.js";
import { TrainingDisplay } from "../display/training-display.js";

const commandOptions = {
  option: envOptions.option,
  "env-module": envOptions["env-module"],
  config: {
    type: "text",
    alias: "c",
    hint: "file",
    description: "a JSON file of these settings; options here go before",
  },
  output: { type: "text", hint: "folder", description: "the folder that keeps the run; runs/ENV-TIME by default" },
  resume: {
    type: "text",
    hint: "folder",
    description: `go on with the run in this folder; these settings can be others then: ${CHANGEABLE_ON_RESUME.map(toOptionName).join(", ")}`,
  },
  "load-in-8bit": { type: "flag", description: "the same as --quantise 8" },
  "load-in-4bit": { type: "flag", description: "the same as --quantise 4" },
} as const satisfies OptionTable;

const options = { ...optionsFromSettings(trainSettings), ...commandOptions };

type Args = OptionValues<typeof commandOptions> & Readonly<Record<string, unknown>>;

export const trainCommand = buildPositionalCommand(
  "train",
  "Train a language model by reinforcement learning in an environment",
  [{ name: "ENV", description: "an environment, such as blackjack, CartPole-v1, python:ID", required: false }],
  options,
  async (args, [name]) => train(args as unknown as Args, name),
  trainOptionGroups(),
);

async function train(args: Args, name: string | undefined): Promise<number> {
  const progressBar = new DownloadProgressBar();
  const display = new TrainingDisplay();
  const printMessage = (message: string) => display.print(message);
  const extras = {
    onDownload: progressBar.update,
    onWarning: printMessage,
    onInfo: printMessage,
    trackers: [display.tracker],
  };
  const run =
    args.resume === undefined ? await startNewRun(args, name, extras) : await resumeExistingRun(args, name, extras);
  progressBar.clear();
  const interrupt = new InterruptHandler(
    `Finishing this update, then saving. Once more quits at once; llamagym train --resume ${run.folder} then goes on from ` +
      "the last checkpoint.",
  );
  try {
    await runTraining(run, interrupt, display);
  } catch (error) {
    display.end();
    printMessage(
      `The run is kept in ${run.folder}; llamagym train --resume ${run.folder} goes on from its last checkpoint.`,
    );
    throw error;
  } finally {
    display.end();
    interrupt.release();
    await run.close();
  }
  return interrupt.isInterrupted ? SIGINT_EXIT_CODE : 0;
}

async function startNewRun(args: Args, name: string | undefined, extras: RunOptions): Promise<Run> {
  const trainOptions = await explicitOptions(args, name);
  const folder = args.output ?? defaultRunFolder(name ?? trainOptions.env);
  return withModelAdvice(trainOptions.model ?? "", () => startRun(trainOptions, folder, extras));
}

async function resumeExistingRun(args: Args, name: string | undefined, extras: RunOptions): Promise<Run> {
  const passed = [...Object.keys(commandOptions), ...Object.keys(optionsFromSettings(trainSettings))].filter(
    (option) => args[option] !== undefined && args[option] !== false,
  );
  const allowed = ["resume", ...CHANGEABLE_ON_RESUME.map(toOptionName)];
  const disallowed = name === undefined ? passed.find((option) => !allowed.includes(option)) : undefined;
  if (name !== undefined || disallowed !== undefined) {
    throw new UsageError(
      `A run that goes on keeps its ${name === undefined ? `--${disallowed}` : "environment"}; with --resume leave ` +
        `${name === undefined ? "it" : `"${name}"`} out. What can be given: ${allowed.map((option) => `--${option}`).join(", ")}.`,
    );
  }
  return resumeRun(args.resume!, readSettings(args), extras);
}

/** Plays before, trains, plays after, and tells what came of it. */
async function runTraining(run: Run, { signal }: InterruptHandler, display: TrainingDisplay): Promise<void> {
  const { config, folder, resumedAt, isResumed } = run;
  print(describeStart(run));
  const before: PolicyReturn[] = [];
  for (const mode of ["train", "eval"] as const) {
    if (!isResumed && !signal.aborted) before.push(...(await evaluateAgent(run, "before training", { mode, signal })));
  }
  const result = await run.train({
    onWarmStart: (stats) => display.showWarmStart(stats, config.sftSteps),
    onProgress: (event) => display.show(event, config.episodes),
    signal,
  });
  display.end();
  const { updates } = result.state;
  if (result.isInterrupted && updates === 0)
    return print(`Stopped before the first update. Begin again by: llamagym train --resume ${folder}`);
  const adapter = await run.saveAdapter();
  if (result.isInterrupted)
    return print(`Stopped and saved after update ${updates}. Go on by: llamagym train --resume ${folder}`);
  if (updates > 0 && updates === resumedAt)
    print(`This run was at its end already; --episodes or --turns make it longer.`);
  const evaluated = [...before, ...(await evaluateAgent(run, "after training", { mode: "eval", signal }))];
  const { env, envOptions: envOptionValues, maxSteps } = config;
  if (evaluated.length > 0)
    print(formatReturnsTable([...listReferencePolicies(env, envOptionValues, maxSteps), ...evaluated]));
  print(describeResult(run, adapter));
}

function describeStart({ folder, isResumed, resumedAt }: Run): string {
  if (!isResumed) return `The run is kept in ${folder}.`;
  return resumedAt > 0
    ? `Going on with ${folder} after update ${resumedAt}.`
    : `The run in ${folder} was stopped before its first checkpoint; it begins anew.`;
}

/** How to see and measure what was trained. */
function describeResult({ config }: Run, adapter: string): string {
  const envArgs = Object.entries(config.envOptions).map(([name, value]) => ` -o ${name}=${JSON.stringify(value)}`);
  const limitArg = config.maxSteps === undefined ? "" : ` --max-steps ${config.maxSteps}`;
  const target = `${config.env}${envArgs.join("")}${limitArg} --${config.train === "lora" ? "adapter" : "model"} ${adapter}`;
  return `What was trained is saved in ${adapter}. See it play: llamagym play ${target} --agent. Measure it: llamagym eval ${target}`;
}

/** The mean return of replies as they are drawn in training ("train") or of greedy ones ("eval"), where it is wanted. */
async function evaluateAgent(
  run: Run,
  label: string,
  { mode, signal }: { readonly mode: "train" | "eval"; readonly signal: AbortSignal },
): Promise<PolicyReturn[]> {
  const { evalEpisodes: episodes } = run.config;
  if (episodes === 0) return [];
  const counter = new EpisodeCounter(episodes, `${label}: `);
  let result: EvalResult;
  try {
    result = await evaluate(run.agent, run.makeEnv, {
      episodes,
      mode,
      signal,
      onProgress: (_turns, ended) => counter.add(ended.length),
    });
  } finally {
    counter.clear();
  }
  const { meanReturn, standardError } = result;
  return [{ policy: `${label}, ${mode === "train" ? "sampled" : "greedy"}`, meanReturn, standardError }];
}

async function explicitOptions(args: Args, name: string | undefined): Promise<TrainOptions> {
  const file = args.config === undefined ? {} : await readJson(args.config);
  const { version: _, ...fromFile } = file;
  const env = name ?? fromFile.env;
  if (typeof env !== "string")
    throw new UsageError("ENV is missing: name an environment, such as blackjack, or a --config FILE with one.");
  const envOptions = { ...(fromFile.envOptions as object | undefined), ...parseEnvOptions(args.option) };
  return { ...fromFile, ...readSettings(args), env: await resolveEnvId(env, args), envOptions };
}

/** The settings that options give; --load-in-8bit and --load-in-4bit are other names of one. */
function readSettings(args: Args): Partial<TrainOptions> {
  const explicit = explicitSettings(trainSettings, args);
  const bits = (["8", "4"] as const).filter((bits) => args[`load-in-${bits}bit`]);
  if (bits.length === 0) return explicit;
  if (bits.length > 1 || (explicit.quantise !== undefined && explicit.quantise !== bits[0]))
    throw new UsageError("Give one of --load-in-8bit, --load-in-4bit and --quantise.");
  return { ...explicit, quantise: bits[0] };
}

/** runs/blackjack-2026-01-31-120000 */
function defaultRunFolder(name = "run"): string {
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `runs/${toFileName(name)}-${time}`;
}
