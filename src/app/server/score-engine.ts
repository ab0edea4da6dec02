import { getOrCreatePromise } from "../../core/promise-cache.js";
import { invalidArgument } from "../../core/errors.js";
import type { Node } from "../../engine/graph/index.js";
import type { LanguageModel } from "../../generation/index.js";
import { type SelectedToken, ScoringGraph, type ScoringNodes } from "../../models/graphs/index.js";

/**
 * A custom output: a function of a model's hidden states or logits, with one row for each token of
 * a candidate.
 */
export type OutputFunction = (nodes: ScoringNodes) => Node;

/** Custom outputs by name. */
export type OutputFunctions = Readonly<Record<string, OutputFunction>>;

/** Scores of one candidate. */
export interface CandidateScore {
  readonly tokens: readonly number[];
  /** Log-probability of each token under the model at temperature 1. */
  readonly logProbs: readonly number[];
  /** Custom outputs by name: for each token, a list of numbers. */
  readonly outputs: Readonly<Record<string, readonly (readonly number[])[]>>;
}

interface ScoreJob {
  readonly prompt: readonly number[];
  readonly candidate: readonly number[];
  readonly resolve: (score: CandidateScore) => void;
  readonly reject: (error: unknown) => void;
}

/** Candidates and prompts of one pass have at most this many tokens, which bounds its memory. */
const MAX_PASS_TOKENS = 4096;

/**
 * Scores candidates that continue prompts, and computes custom outputs. Requests that wait share
 * passes; a prompt is computed once.
 */
export class ScoreEngine {
  private readonly graphs = new Map<string, Promise<ScoringGraph>>();
  private readonly waiting = new Map<string, ScoreJob[]>();

  constructor(
    private readonly model: LanguageModel,
    private readonly outputs: OutputFunctions = {},
  ) {}

  /**
   * Scores candidates of one prompt; `names` name custom outputs. @throws INVALID_ARGUMENT for an
   * unknown name.
   */
  async score(
    prompt: readonly number[],
    candidates: readonly (readonly number[])[],
    names: readonly string[] = [],
  ): Promise<CandidateScore[]> {
    const unknown = names.find((name) => !Object.hasOwn(this.outputs, name));
    if (unknown !== undefined) {
      const known = Object.keys(this.outputs).join(", ") || "none";
      throw invalidArgument(`There is no output "${unknown}". Registered outputs: ${known}.`);
    }
    const key = JSON.stringify([...names].sort());
    let queue = this.waiting.get(key);
    if (queue === undefined) {
      this.waiting.set(key, (queue = []));
      // Requests made in the same turn of the event loop, and while a pass runs, share the next
      // one.
      void Promise.resolve().then(() => this.run(key, names));
    }
    const jobs = candidates.map(
      (candidate) =>
        new Promise<CandidateScore>((resolve, reject) => queue.push({ prompt, candidate, resolve, reject })),
    );
    return Promise.all(jobs);
  }

  private async run(key: string, names: readonly string[]): Promise<void> {
    const queue = this.waiting.get(key)!;
    while (queue.length > 0) {
      const jobs = takePass(queue);
      try {
        const scores = await this.scorePass(await this.graph(key, names), jobs);
        jobs.forEach(({ resolve }, i) => resolve(scores[i]));
      } catch (error) {
        for (const { reject } of jobs) reject(error);
      }
    }
    this.waiting.delete(key);
  }

  private graph(key: string, names: readonly string[]): Promise<ScoringGraph> {
    const outputs = (nodes: ScoringNodes) => Object.fromEntries(names.map((name) => [name, this.outputs[name](nodes)]));
    return getOrCreatePromise(this.graphs, key, () => ScoringGraph.create(this.model.causalLM, { outputs }));
  }

  private async scorePass(graph: ScoringGraph, jobs: readonly ScoreJob[]): Promise<CandidateScore[]> {
    const groups = new Map<readonly number[], (readonly number[])[]>();
    const selected: SelectedToken[] = [];
    for (const { prompt, candidate } of jobs) {
      if (!groups.has(prompt)) groups.set(prompt, []);
      const rows = groups.get(prompt)!;
      const group = [...groups.keys()].indexOf(prompt);
      candidate.forEach((_, index) => selected.push({ group, row: rows.length, index }));
      rows.push(candidate);
    }
    const { logProbs, outputs } = await graph.run({
      groups: Array.from(groups, ([prefix, rows]) => ({ prefix, rows })),
      selected,
    });
    let start = 0;
    return jobs.map(({ candidate: tokens }) => {
      const offset = start;
      start += tokens.length;
      const rowsOf = (values: Float32Array) => {
        const width = values.length / selected.length;
        return tokens.map((_, i) => [...values.subarray((offset + i) * width, (offset + i + 1) * width)]);
      };
      return {
        tokens,
        logProbs: [...logProbs.subarray(offset, start)],
        outputs: Object.fromEntries(Object.entries(outputs).map(([name, values]) => [name, rowsOf(values)])),
      };
    });
  }
}

/** Takes the jobs of the next pass from a queue. */
function takePass(queue: ScoreJob[]): ScoreJob[] {
  const prompts = new Set<readonly number[]>();
  let count = 0;
  let tokens = 0;
  for (const { prompt, candidate } of queue) {
    tokens += candidate.length + (prompts.has(prompt) ? 0 : prompt.length);
    if (count > 0 && tokens > MAX_PASS_TOKENS) break;
    prompts.add(prompt);
    count++;
  }
  return queue.splice(0, count);
}
