import { readJson } from "../files/index.js";
import { evaluate, type Evaluation } from "../training/evaluate.js";
import { RESUME_SETTINGS, resumeRun, startRun, type Run, type RunOptions } from "../training/run.js";
import { trainSettings, type TrainOptions } from "../training/settings.js";
import { envId, envOptions, fileNamePart, readEnvOptions } from "./env-options.js";
import { EpisodeCounter } from "./episode-counter.js";
import { Interrupt, INTERRUPTED } from "./interrupt.js";
import { modelAdvice } from "./model-advice.js";
import { print } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";
import { DownloadBars } from "./progress.js";
import { referencePolicies, returnsTable, type PolicyReturn } from "./reference-policies.js";
import { givenSettings, optionName, settingOptions } from "./setting-options.js";
import { trainGroups } from "./train-groups.js";
import { TrainingDisplay } from "./training-display.js";

const ownOptions = {
  option: envOptions.option,
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
    description: `go on with the run in this folder; these settings can be others then: ${RESUME_SETTINGS.map(optionName).join(", ")}`,
  },
  "load-in-8bit": { type: "flag", description: "the same as --quantise 8" },
  "load-in-4bit": { type: "flag", description: "the same as --quantise 4" },
} as const satisfies OptionTable;

const options = { ...settingOptions(trainSettings), ...ownOptions };

type Values = OptionValues<typeof ownOptions> & Readonly<Record<string, unknown>>;

export const trainCommand = positionalCommand(
  "train",
  "Train a language model by reinforcement learning in an environment",
  [{ name: "ENV", description: "an environment, such as blackjack, CartPole-v1, python:ID", required: false }],
  options,
  async (values, [name]) => train(values as unknown as Values, name),
  trainGroups(),
);

async function train(values: Values, name: string | undefined): Promise<number> {
  const bars = new DownloadBars();
  const display = new TrainingDisplay();
  const tell = (message: string) => display.print(message);
  const extras = { onDownload: bars.update, warn: tell, note: tell, trackers: [display.tracker] };
  const run = values.resume === undefined ? await start(values, name, extras) : await resume(values, name, extras);
  bars.end();
  const interrupt = new Interrupt(
    `Finishing this update, then saving. Once more quits at once; llamagym train --resume ${run.folder} then goes on from ` +
      "the last checkpoint.",
  );
  try {
    await carryOut(run, interrupt, display);
  } catch (error) {
    display.end();
    tell(`The run is kept in ${run.folder}; llamagym train --resume ${run.folder} goes on from its last checkpoint.`);
    throw error;
  } finally {
    display.end();
    interrupt.release();
    await run.close();
  }
  return interrupt.hasCome ? INTERRUPTED : 0;
}

async function start(values: Values, name: string | undefined, extras: RunOptions): Promise<Run> {
  const given = await givenOptions(values, name);
  const folder = values.output ?? runFolder(name ?? given.env);
  return modelAdvice(given.model ?? "", () => startRun(given, folder, extras));
}

async function resume(values: Values, name: string | undefined, extras: RunOptions): Promise<Run> {
  const given = [...Object.keys(ownOptions), ...Object.keys(settingOptions(trainSettings))].filter(
    (option) => values[option] !== undefined && values[option] !== false,
  );
  const changeable = ["resume", ...RESUME_SETTINGS.map(optionName)];
  const other = name === undefined ? given.find((option) => !changeable.includes(option)) : undefined;
  if (name !== undefined || other !== undefined) {
    throw new UsageError(
      `A run that goes on keeps its ${name === undefined ? `--${other}` : "environment"}; with --resume leave ` +
        `${name === undefined ? "it" : `"${name}"`} out. What can be given: ${changeable.map((option) => `--${option}`).join(", ")}.`,
    );
  }
  return resumeRun(values.resume!, settingsOf(values), extras);
}

/** Plays before, trains, plays after, and tells what came of it. */
async function carryOut(run: Run, { signal }: Interrupt, display: TrainingDisplay): Promise<void> {
  const { config, folder, resumedAt, isResumed } = run;
  print(beginning(run));
  const before: PolicyReturn[] = [];
  for (const mode of ["train", "eval"] as const) {
    if (!isResumed && !signal.aborted) before.push(...(await measure(run, "before training", { mode, signal })));
  }
  const result = await run.train({
    onWarmStart: (stats) => display.showWarmStart(stats, config.sftSteps),
    onProgress: (event) => display.show(event, config.episodes),
    signal,
  });
  display.end();
  const { updates } = result.progress;
  if (result.isInterrupted && updates === 0)
    return print(`Stopped before the first update. Begin again by: llamagym train --resume ${folder}`);
  const adapter = await run.saveAdapter();
  if (result.isInterrupted)
    return print(`Stopped and saved after update ${updates}. Go on by: llamagym train --resume ${folder}`);
  if (updates > 0 && updates === resumedAt)
    print(`This run was at its end already; --episodes or --turns make it longer.`);
  const measured = [...before, ...(await measure(run, "after training", { mode: "eval", signal }))];
  const { env, envOptions: given, maxSteps } = config;
  if (measured.length > 0) print(returnsTable([...referencePolicies(env, given, maxSteps), ...measured]));
  print(closing(run, adapter));
}

function beginning({ folder, isResumed, resumedAt }: Run): string {
  if (!isResumed) return `The run is kept in ${folder}.`;
  return resumedAt > 0
    ? `Going on with ${folder} after update ${resumedAt}.`
    : `The run in ${folder} was stopped before its first checkpoint; it begins anew.`;
}

/** How to see and measure what was trained. */
function closing({ config }: Run, adapter: string): string {
  const given = Object.entries(config.envOptions).map(([name, value]) => ` -o ${name}=${JSON.stringify(value)}`);
  const limit = config.maxSteps === undefined ? "" : ` --max-steps ${config.maxSteps}`;
  const what = `${config.env}${given.join("")}${limit} --${config.train === "lora" ? "adapter" : "model"} ${adapter}`;
  return `What was trained is saved in ${adapter}. See it play: llamagym play ${what} --agent. Measure it: llamagym eval ${what}`;
}

/** The mean return of replies as they are drawn in training ("train") or of greedy ones ("eval"), where it is wanted. */
async function measure(
  run: Run,
  when: string,
  { mode, signal }: { readonly mode: "train" | "eval"; readonly signal: AbortSignal },
): Promise<PolicyReturn[]> {
  const { evalEpisodes: episodes } = run.config;
  if (episodes === 0) return [];
  const counter = new EpisodeCounter(episodes, `${when}: `);
  let result: Evaluation;
  try {
    result = await evaluate(run.agent, run.makeEnv, {
      episodes,
      mode,
      signal,
      onRound: (_turns, ended) => counter.add(ended.length),
    });
  } finally {
    counter.end();
  }
  const { meanReturn, standardError } = result;
  return [{ policy: `${when}, ${mode === "train" ? "sampled" : "greedy"}`, meanReturn, standardError }];
}

async function givenOptions(values: Values, name: string | undefined): Promise<TrainOptions> {
  const file = values.config === undefined ? {} : await readJson(values.config);
  const { version: _, ...fromFile } = file;
  const env = name ?? fromFile.env;
  if (typeof env !== "string")
    throw new UsageError("ENV is missing: name an environment, such as blackjack, or a --config FILE with one.");
  const envOptions = { ...(fromFile.envOptions as object | undefined), ...readEnvOptions(values.option) };
  return { ...fromFile, ...settingsOf(values), env: envId(env), envOptions };
}

/** The settings that options give; --load-in-8bit and --load-in-4bit are other names of one. */
function settingsOf(values: Values): Partial<TrainOptions> {
  const given = givenSettings(trainSettings, values);
  const bits = (["8", "4"] as const).filter((bits) => values[`load-in-${bits}bit`]);
  if (bits.length === 0) return given;
  if (bits.length > 1 || (given.quantise !== undefined && given.quantise !== bits[0]))
    throw new UsageError("Give one of --load-in-8bit, --load-in-4bit and --quantise.");
  return { ...given, quantise: bits[0] };
}

/** runs/blackjack-2026-01-31-120000 */
function runFolder(name = "run"): string {
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `runs/${fileNamePart(name)}-${time}`;
}
