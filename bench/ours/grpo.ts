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

/** This project's side of `npm run bench -- grpo`: one trainer, which waits between its steps until more are asked for. */
class Steps implements Tracker {
  private seconds: number[] = [];
  private goOn = () => {};
  private stepMade = () => {};
  private training: Promise<unknown> | undefined;

  async handle({ repeat, ...work }: Request & GrpoWork): Promise<Result> {
    this.seconds = [];
    while (this.seconds.length < repeat) {
      const made = new Promise<void>((resolve) => (this.stepMade = resolve));
      this.goOn();
      this.training ??= train(work, this);
      // An error ends the wait too.
      await Promise.race([made, this.training]);
    }
    return { seconds: this.seconds, count: 1 };
  }

  async log(_step: number, record: Readonly<Record<string, number>>): Promise<void> {
    this.seconds.push(record.step_time);
    const next = new Promise<void>((resolve) => (this.goOn = resolve));
    this.stepMade();
    await next;
  }
}

async function train({ completions, group, new_tokens, prompts }: GrpoWork, tracker: Tracker): Promise<void> {
  const base = await AutoModelForCausalLM.fromPretrained(values.model!, {
    device: "cpu",
    threads: Number(values.threads),
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
      maxRefills: 0,
    },
    trackers: [tracker],
  });
  await trainer.train();
}

const steps = new Steps();
await serve((request) => steps.handle(request as Request & GrpoWork));
process.exit(0);
