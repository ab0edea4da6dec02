import { parseArgs } from "node:util";
import { AutoModelForCausalLM, getPeftModel, GrpoTrainer, type RewardBatch, type Tracker } from "../../src/index.js";
import type { Request, Result } from "../framework.js";
import type { GrpoWork } from "../grpo.js";
import { serve } from "../serve.js";

const { values } = parseArgs({
  options: { model: { type: "string" }, threads: { type: "string", default: "2" } },
});

const UNLIMITED_STEPS = 1_000_000;

/** A reward that differs between completions and costs nothing. */
function distinctCharacters({ completions }: RewardBatch): number[] {
  return completions.map((completion) => new Set(completion).size);
}

/** One trainer, which waits between its steps until more are asked for. */
class SteppedTrainer implements Tracker {
  private seconds: number[] = [];
  private resume = () => {};
  private onStepDone = () => {};
  private training: Promise<unknown> | undefined;
  private readonly abortController = new AbortController();

  constructor(private readonly work: GrpoWork) {}

  async runSteps(repeat: number): Promise<Result> {
    this.seconds = [];
    while (this.seconds.length < repeat) {
      const stepDone = new Promise<void>((resolve) => (this.onStepDone = resolve));
      this.resume();
      this.training ??= train(this.work, this, this.abortController.signal);
      // An error ends the wait too.
      await Promise.race([stepDone, this.training]);
    }
    return { seconds: this.seconds, count: 1 };
  }

  async end(): Promise<void> {
    this.abortController.abort();
    this.resume();
    await this.training;
  }

  async log(_step: number, record: Readonly<Record<string, number>>): Promise<void> {
    this.seconds.push(record.step_time);
    const next = new Promise<void>((resolve) => (this.resume = resolve));
    this.onStepDone();
    await next;
  }
}

async function train(work: GrpoWork, tracker: Tracker, signal: AbortSignal): Promise<void> {
  const { completions, group, new_tokens, prompts, backward } = work;
  const base = await AutoModelForCausalLM.fromPretrained(values.model!, {
    device: "cpu",
    threads: Number(values.threads),
    backwardPrecision: backward,
  });
  const model = await getPeftModel(base, { r: 16, loraAlpha: 32, targetModules: "all-linear" });
  const trainer = new GrpoTrainer({
    model,
    rewardFuncs: distinctCharacters,
    trainDataset: prompts.map((prompt) => ({ prompt })),
    args: {
      batchSize: completions,
      numGenerations: group,
      maxCompletionLength: new_tokens,
      // Completions never end early, so that every step is the same work.
      ignoreEos: true,
      maxSteps: UNLIMITED_STEPS,
      // A group of equal rewards would be less work.
      filterGroups: false,
      maxResamples: 0,
    },
    trackers: [tracker],
  });
  await trainer.train({ signal });
  await base.close();
}

/** The trainer of the newest case: two would share the memory that is measured. */
let current: { readonly backward: GrpoWork["backward"]; readonly trainer: SteppedTrainer } | undefined;

/** This project's side of `npm run bench -- grpo`. */
async function handle({ repeat, ...work }: Request & GrpoWork): Promise<Result> {
  if (current === undefined || current.backward !== work.backward) {
    await current?.trainer.end();
    current = { backward: work.backward, trainer: new SteppedTrainer(work) };
  }
  return current.trainer.runSteps(repeat);
}

await serve((request) => handle(request as Request & GrpoWork));
process.exit(0);
