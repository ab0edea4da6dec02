import { setImmediate as nextTurn } from "node:timers/promises";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { RandomStream } from "../../../src/index.js";
import { errorMessage } from "../../../src/core/errors.js";
import type { SampleOutput, SampleRequest } from "../../../src/generation/sampling/sample-request.js";
import { getRopeRegime } from "../../../src/engine/nn/index.js";
import { Sampler } from "../../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../../../src/models/causal-lm.js";
import { FrozenStates } from "../../../src/models/graphs/frozen-states.js";
import { writeRandomModel } from "../../support/random-model.js";
import type { Driver, Totals } from "../driver.js";

/**
 * Log-probabilities of a sequence in a batch and of the same sequence alone differ by at most this,
 * relative to 1.
 */
const TOLERANCE = 1e-4;
/**
 * Maximum difference between two computations of one sequence alone, in float32: far below that of
 * another context.
 */
const MAX_ROUNDING = 2e-3;
/** Maximum number of tokens of a prompt: longer than one step. */
const MAX_LENGTH = 700;

/** A model under test, and an equal one that computes the expected completions one by one. */
interface World {
  readonly tested: CausalLM;
  readonly expected: CausalLM;
  /** Shares its session with the samplers of each schedule. */
  readonly testedSampler: Sampler;
  readonly expectedSampler: Sampler;
  /** States of frozen layers, which only the tested model keeps. */
  readonly states: FrozenStates | undefined;
  readonly maxLength: number;
}

/** A completion or a score that a schedule asks for. */
interface Task {
  readonly prompt: readonly number[];
  /** The tokens to score; undefined for a completion. */
  readonly continuation: readonly number[] | undefined;
  readonly options: Partial<SampleRequest> & {
    readonly sampling: SampleRequest["sampling"];
    readonly maxNewTokens: number;
  };
  readonly seed: number;
  readonly adapter: boolean;
  /** Number of updates of the parameters before it. */
  readonly version: number;
}

interface Outcome {
  readonly task: Task;
  readonly result: SampleOutput | readonly number[];
}

async function openWorld(folder: string, withAdapter: boolean, maxStates?: number): Promise<World> {
  const open = async () => {
    const model = await CausalLM.open(folder, { device: "cpu", threads: 1 });
    const top = model.config.layers.length - 1;
    return withAdapter ? getPeftModel(model, { r: 2, layersToTransform: [top] }) : model;
  };
  const [tested, expected] = [await open(), await open()];
  const states = maxStates === undefined ? undefined : FrozenStates.create(tested, { maxStates });
  await states?.open();
  return {
    tested,
    expected,
    testedSampler: await Sampler.create(tested, { frozenStates: states }),
    expectedSampler: await Sampler.create(expected),
    states,
    maxLength: Math.min(MAX_LENGTH, tested.config.maxPositions - 40),
  };
}

/** Sets the adapter's parameters to those after a number of updates. */
async function setVersion(model: CausalLM, version: number): Promise<void> {
  if (!model.isTrainable) return;
  const random = new RandomStream([version, 77]);
  for (const name of model.parameters.names) {
    const size = model.parameters.shape(name).reduce((product, length) => product * length, 1);
    await model.parameters.write(
      name,
      Float32Array.from({ length: size }, () => random.normal(0, 0.3)),
    );
  }
  model.markParametersChanged();
}

/** Allows one, two or all tokens in turn, and ends after `length` tokens. */
function alternatingConstraint(vocabSize: number, length: number, first: number): SampleRequest["constraint"] {
  const all = Int32Array.from({ length: vocabSize }, (_, i) => i);
  const lists = [Int32Array.of(first % vocabSize), Int32Array.of(1, 2 + (first % (vocabSize - 2))), all];
  return {
    cursor() {
      let count = 0;
      return {
        get allowedTokens() {
          return count < length ? lists[(count + first) % 3] : new Int32Array(0);
        },
        get isComplete() {
          return count >= length;
        },
        advance() {
          count++;
        },
      };
    },
  };
}

/** Runs a random schedule of completions, and compares each with the same completion alone. */
class Schedule {
  private version = 0;
  private sampledTokens = 0;
  private awaited: { readonly count: number; readonly done: () => void } | undefined;
  private readonly outcomes: Outcome[] = [];
  private readonly running: Promise<unknown>[] = [];
  private readonly samplers: readonly { readonly sampler: Sampler; readonly adapter: boolean }[];
  private readonly stems: readonly (readonly number[])[];

  constructor(
    private readonly world: World,
    private readonly random: RandomStream,
  ) {
    const { testedSampler } = world;
    const create = (adapter: boolean) => ({
      sampler: testedSampler.withAdapter({ adapter, maxNumSequences: random.choice([1, 2, 3, 5, 16, 64]) }),
      adapter,
    });
    const hasReference = world.tested.isTrainable && random.integers(3) === 0;
    this.samplers = [
      create(true),
      ...(hasReference ? [create(false)] : []),
      ...(random.integers(4) === 0 ? [create(true)] : []),
    ];
    this.stems = Array.from({ length: 1 + random.integers(3) }, () => this.tokens(1 + random.integers(60)));
  }

  /** Returns how much was sampled and compared. */
  async run(): Promise<Totals> {
    const { random, world } = this;
    world.states?.clear();
    await setVersion(world.tested, 0);
    const steps = 3 + random.integers(30);
    for (let i = 0; i < steps; i++) await this.act(random.integers(24));
    await Promise.all(this.running);
    const tokens = this.sampledTokens;
    for (const { sampler } of this.samplers) await sampler.release();
    for (let version = 0; version <= this.version; version++) {
      await setVersion(world.expected, version);
      for (const outcome of this.outcomes)
        if (outcome.task.version === version)
          await (random.integers(4) === 0 ? this.check(outcome) : this.checkScores(outcome));
    }
    return { tokens, comparisons: this.outcomes.length };
  }

  private async act(kind: number): Promise<void> {
    const { random, world } = this;
    if (kind < 12) return this.start();
    if (kind < 14) return this.fillAndEmpty();
    if (kind < 16) for (let i = 0, count = 2 + random.integers(20); i < count; i++) this.start();
    else if (kind < 17) for (let i = 0, count = random.integers(12); i < count; i++) await nextTurn();
    else if (kind < 19) await this.waitForTokens(1 + random.integers(40));
    else if (kind < 21 && this.running.length > 0) await Promise.race(this.running);
    else if (kind < 22) await Promise.all(this.running);
    else if (kind < 23) {
      this.version++;
      await setVersion(world.tested, this.version);
    } else if (random.integers(2) === 0) world.states?.clear();
    else world.states?.endUpdate();
  }

  /**
   * Fills many rows with long prompts, lets a few short ones run while the others are idle, and
   * comes back to the long ones.
   */
  private async fillAndEmpty(): Promise<void> {
    const { random } = this;
    const long = Array.from({ length: 3 + random.integers(20) }, () => this.tokens(20 + random.integers(100)));
    for (const prompt of long) this.start(prompt, 1 + random.integers(2));
    await Promise.all(this.running);
    for (let i = 0, count = 2 + random.integers(4); i < count; i++)
      this.start(this.tokens(1 + random.integers(12)), 4 + random.integers(40));
    for (let i = 0, count = 1 + random.integers(4); i < count; i++) {
      await this.waitForTokens(10 + random.integers(40));
      const prompt = random.choice(long);
      this.start(prompt.slice(0, Math.ceil(prompt.length * (0.4 + 0.6 * random.random()))), 1 + random.integers(8));
    }
  }

  /** Waits until a number of tokens were sampled, or everything has ended. */
  private async waitForTokens(count: number): Promise<void> {
    const sampled = new Promise<void>((done) => (this.awaited = { count: this.sampledTokens + count, done }));
    await Promise.race([sampled, Promise.all(this.running)]);
    this.awaited = undefined;
  }

  private tokens(length: number): number[] {
    return Array.from({ length }, () => this.random.integers(this.world.tested.config.vocabSize));
  }

  private createPrompt(): readonly number[] {
    const { random } = this;
    const kind = random.integers(10);
    const earlier = this.outcomes.length === 0 ? undefined : random.choice(this.outcomes);
    if (kind < 4 && earlier !== undefined) {
      const { task, result } = earlier;
      const all = "tokens" in result ? [...task.prompt, ...result.tokens] : task.prompt;
      // Continues an earlier sequence, or diverges from it.
      const kept = random.integers(2) === 0 ? all : all.slice(0, 1 + random.integers(all.length));
      return [...kept, ...this.tokens(random.integers(8))];
    }
    if (kind === 9 && random.integers(6) === 0) return this.tokens(100 + random.integers(600));
    const stem = random.choice(this.stems);
    if (kind < 6) return stem.slice(0, 1 + random.integers(stem.length));
    if (kind < 8) return [...stem, ...this.tokens(random.integers(30))];
    return this.tokens(1 + random.integers(50));
  }

  /** A prompt and tokens to score: few, more than a step has, or an earlier completion. */
  private createScore(prompt: readonly number[]): Pick<Task, "prompt" | "continuation"> {
    const { random, world } = this;
    const earlier = random.integers(3) === 0 && this.outcomes.length > 0 ? random.choice(this.outcomes) : undefined;
    if (earlier !== undefined && "tokens" in earlier.result && earlier.result.tokens.length > 0)
      return { prompt: earlier.task.prompt, continuation: earlier.result.tokens };
    const longest = Math.min(random.choice([20, 20, 600]), world.tested.config.maxPositions - prompt.length);
    return { prompt, continuation: this.tokens(1 + random.integers(longest)) };
  }

  private start(
    prompt = this.createPrompt(),
    maxNewTokens = 1 + this.random.integers(this.random.choice([3, 24])),
  ): void {
    const { random, world, version } = this;
    const { vocabSize } = world.tested.config;
    const { sampler, adapter } = random.choice(this.samplers);
    const isGreedy = random.integers(4) === 0;
    const isFiltered = random.integers(4) === 0;
    const sampling = {
      temperature: isGreedy ? 0 : random.choice([1, 0.7]),
      topK: isFiltered ? 5 : 0,
      topP: isFiltered ? 0.9 : 1,
      minP: 0,
      repetitionPenalty: random.integers(8) === 0 ? 1.2 : 1,
    };
    const isConstrained = random.integers(4) === 0;
    const options = {
      sampling,
      maxNewTokens,
      ...(isConstrained && {
        constraint: alternatingConstraint(vocabSize, 1 + random.integers(maxNewTokens), random.integers(vocabSize)),
        skipForcedTokens: random.integers(2) === 0,
        skipRawLogProbs: random.integers(2) === 0,
      }),
    };
    const cut = prompt.slice(0, world.maxLength);
    const text = random.integers(8) === 0 ? this.createScore(cut) : { prompt: cut, continuation: undefined };
    const copies = random.integers(6) === 0 ? 4 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const task: Task = {
        ...text,
        options,
        seed: random.integers(2 ** 31),
        adapter,
        version,
      };
      const controller = random.integers(12) === 0 ? new AbortController() : undefined;
      const abortAfter = random.integers(maxNewTokens + 1);
      const result = this.ask(sampler, task, controller, abortAfter);
      this.running.push(
        result.then((value) => {
          if (this.version === version) this.outcomes.push({ task, result: value });
        }),
      );
    }
  }

  private ask(
    sampler: Sampler,
    { prompt, continuation, options, seed }: Task,
    controller?: AbortController,
    abortAfter = 0,
  ): Promise<SampleOutput | readonly number[]> {
    if (continuation !== undefined) return sampler.score(prompt, continuation, { sharesPrompt: seed % 2 === 0 });
    const stream = new RandomStream(seed);
    let count = 0;
    if (abortAfter === 0) controller?.abort();
    return sampler.sample({
      ...options,
      prompt,
      random: () => stream.random(),
      stopTokens: new Set([5]),
      signal: controller?.signal,
      onToken: () => {
        this.sampledTokens++;
        if (this.awaited !== undefined && this.sampledTokens >= this.awaited.count) this.awaited.done();
        if (++count === abortAfter) controller?.abort();
      },
    });
  }

  /**
   * Compares the tokens of a completion with one score of all of them, which takes one step instead
   * of one for each token.
   */
  private async checkScores(outcome: Outcome): Promise<void> {
    const { task, result } = outcome;
    if (!("tokens" in result)) return this.check(outcome);
    const { ropes } = this.world.expected.config;
    const length = task.prompt.length;
    // A score has the rotary frequencies of its whole length.
    if (getRopeRegime(ropes, length) !== getRopeRegime(ropes, length + result.tokens.length))
      return this.check(outcome);
    const known = result.rawLogProbs.flatMap((logProb, i) => (Number.isNaN(logProb) ? [] : [i]));
    const alone = this.world.expectedSampler.withAdapter({ adapter: task.adapter, maxNumSequences: 1 });
    try {
      const scores = result.tokens.length === 0 ? [] : await alone.score(task.prompt, result.tokens);
      const ours = known.map((i) => result.rawLogProbs[i]);
      const expected = known.map((i) => scores[i]);
      if (areClose(task, ours, expected)) return;
      const rounding = await measureRounding(alone, task.prompt, result.tokens, scores);
      compare(
        "scores of sampled tokens",
        task,
        ours,
        expected,
        known.map((i) => rounding[i]),
      );
    } finally {
      await alone.release();
    }
  }

  private async check({ task, result }: Outcome): Promise<void> {
    const { expectedSampler } = this.world;
    const alone = expectedSampler.withAdapter({ adapter: task.adapter, maxNumSequences: 1 });
    try {
      const expected = await this.ask(alone, task);
      if (!("tokens" in result) || !("tokens" in expected)) {
        compare("scores", task, result as readonly number[], expected as readonly number[]);
        return;
      }
      const { tokens, logProbs, rawLogProbs, finishReason } = result;
      if (
        finishReason !== "aborted" &&
        finishReason !== expected.finishReason &&
        tokens.join() === expected.tokens.join()
      )
        throw new Error(`${describeTask(task)}: ended by ${finishReason}, alone by ${expected.finishReason}`);
      let common = 0;
      while (common < tokens.length && tokens[common] === expected.tokens[common]) common++;
      compare("log-probabilities", task, logProbs.slice(0, common), expected.logProbs.slice(0, common));
      // Whether the logits of all tokens are computed for a sequence that does not need them
      // depends on the others.
      const isKnown = (_: number, i: number) =>
        i < common &&
        !(
          task.options.skipRawLogProbs === true &&
          (Number.isNaN(rawLogProbs[i]) || Number.isNaN(expected.rawLogProbs[i]))
        );
      compare("raw log-probabilities", task, rawLogProbs.filter(isKnown), expected.rawLogProbs.filter(isKnown));
      const isWhole = finishReason === "aborted" || tokens.length === expected.tokens.length;
      if (common === tokens.length && isWhole) return;
      // Two tokens that are equally probable, or a random number between them: all later tokens
      // must have the right scores.
      const scores = await alone.score(task.prompt, tokens);
      if (common === tokens.length || Number.isNaN(rawLogProbs[common]))
        throw new Error(`${describeTask(task)}: sampled ${tokens.join()}, alone ${expected.tokens.join()}`);
      // A score has the rotary frequencies of its whole length.
      const { ropes } = this.world.expected.config;
      const regime = (length: number) => getRopeRegime(ropes, task.prompt.length + length);
      const known = tokens
        .map((_, i) => i)
        .filter((i) => !Number.isNaN(rawLogProbs[i]) && regime(i) === regime(tokens.length));
      compare(
        "scores of sampled tokens",
        task,
        known.map((i) => rawLogProbs[i]),
        known.map((i) => scores[i]),
      );
    } finally {
      await alone.release();
    }
  }
}

/**
 * Returns how much the score of each token differs between computations of one sequence alone that
 * are equal but for rounding: after more or less of the sequence in a step before. Some tokens of a
 * random model are ill-conditioned and differ by more than `TOLERANCE`.
 */
async function measureRounding(
  alone: Sampler,
  prompt: readonly number[],
  tokens: readonly number[],
  scores: readonly number[],
): Promise<number[]> {
  const [lowest, highest] = [[...scores], [...scores]];
  for (let count = 1; count < tokens.length; count++) {
    const rest = await alone.score([...prompt, ...tokens.slice(0, count)], tokens.slice(count));
    for (const [i, score] of rest.entries()) {
      lowest[count + i] = Math.min(lowest[count + i], score);
      highest[count + i] = Math.max(highest[count + i], score);
    }
  }
  return lowest.map((low, i) => Math.min(highest[i] - low, MAX_ROUNDING));
}

function areClose(
  task: Task,
  ours: readonly number[],
  expected: readonly number[],
  rounding?: readonly number[],
): boolean {
  // A temperature below 1 multiplies the logits, and with them their rounding.
  const tolerance = TOLERANCE / (task.options.sampling.temperature || 1);
  const isClose = (value: number, i: number) =>
    Object.is(value, expected[i]) ||
    Math.abs(value - expected[i]) <= tolerance * Math.max(1, Math.abs(expected[i])) + (rounding?.[i] ?? 0);
  return ours.length === expected.length && ours.every(isClose);
}

/** @throws Error if values differ by more than `TOLERANCE` and their rounding. */
function compare(
  what: string,
  task: Task,
  ours: readonly number[],
  expected: readonly number[],
  rounding?: readonly number[],
): void {
  if (areClose(task, ours, expected, rounding)) return;
  throw new Error(`${describeTask(task)}: ${what} ${ours.join()}, alone ${expected.join()}`);
}

function describeTask({ prompt, continuation, adapter, version }: Task): string {
  const kind = continuation === undefined ? "completion" : "continuation";
  return `${kind} of ${prompt.length} tokens (adapter ${adapter}, version ${version})`;
}

/**
 * Random schedules of completions: each has the tokens and log-probabilities of the same completion
 * alone, and each ends, whatever else is in the batch, is canceled, or changes the parameters.
 */
export const sampler: Driver = {
  timeLimitMs: 60_000,
  share: 0.1,
  async start() {
    const { folder } = await writeRandomModel({
      maxPositions: 2048,
      withTokenizer: false,
      config: { num_hidden_layers: 3 },
    });
    const fixture = (name: string) => resolve("test", "fixtures", "models", name);
    const worlds = [
      await openWorld(folder, false),
      await openWorld(folder, true),
      await openWorld(folder, true, 100_000),
      await openWorld(folder, true, 300),
      // Rotary frequencies that depend on the length, and attention to the last tokens only.
      await openWorld(fixture("phi3"), true, 100_000),
      await openWorld(fixture("gemma3"), true, 100_000),
    ];
    process.once("exit", () => rmSync(folder, { recursive: true }));
    return async (random) => {
      return new Schedule(random.choice(worlds), random).run().catch((error: unknown) => {
        // Nothing in a schedule is invalid, so an error with a code is a finding as well.
        throw new Error(errorMessage(error), { cause: error });
      });
    };
  },
};
