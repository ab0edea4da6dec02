import { packSharedPrefixes, type SelectedToken } from "../../models/graphs/index.js";
import { defaultMicroBatchTokens } from "../../models/weights/index.js";
import type { LoadedPolicy } from "./snapshots.js";

/** A token at a position of a prompt, or one in its place. */
export interface PromptToken {
  /** Position from 1 on: the first token has no log-probability. */
  readonly position: number;
  readonly token: number;
}

interface Job {
  readonly prompt: readonly number[];
  readonly wanted: readonly PromptToken[];
  readonly resolve: (logProbs: Float32Array) => void;
  readonly reject: (error: unknown) => void;
}

/** Values in float32 that the logits of a pass may take. */
const MAX_LOGITS = 2 ** 27;

/**
 * Computes log-probabilities of the tokens of prompts. Requests for the same values that wait share
 * passes.
 */
export class PromptScores {
  private readonly waiting = new Map<LoadedPolicy["model"], Job[]>();

  async score(policy: LoadedPolicy, prompt: readonly number[], wanted: readonly PromptToken[]): Promise<Float32Array> {
    if (wanted.length === 0) return new Float32Array();
    let queue = this.waiting.get(policy.model);
    if (queue === undefined) {
      this.waiting.set(policy.model, (queue = []));
      // Requests that arrive together share a pass.
      setImmediate(() => void this.run(policy));
    }
    return new Promise((resolve, reject) => queue.push({ prompt, wanted, resolve, reject }));
  }

  private async run(policy: LoadedPolicy): Promise<void> {
    const queue = this.waiting.get(policy.model)!;
    while (queue.length > 0) {
      const jobs = queue.splice(0);
      await this.runJobs(policy, jobs).catch((error: unknown) => {
        for (const { reject } of jobs) reject(error);
      });
    }
    this.waiting.delete(policy.model);
  }

  private async runJobs({ form, model }: LoadedPolicy, jobs: readonly Job[]): Promise<void> {
    const { config } = model;
    const perToken = Math.max(1, ...jobs.map(({ prompt, wanted }) => wanted.length / prompt.length));
    const fitting = Math.min(defaultMicroBatchTokens(config), Math.floor(MAX_LOGITS / config.vocabSize));
    const microBatchTokens = Math.max(1, Math.floor(fitting / perToken));
    // Nothing behind the last position is computed.
    const items = jobs.map(({ prompt, wanted }) => [prompt.slice(0, Math.max(...wanted.map((each) => each.position)))]);
    for (const { indices, groups, positions } of packSharedPrefixes(items, { microBatchTokens, config })) {
      const selected = indices.flatMap((job, i) => {
        const { group, row, prefix } = positions[i];
        return jobs[job].wanted.map(({ position, token }): SelectedToken => ({
          group,
          row,
          index: position - prefix,
          target: token,
        }));
      });
      const logProbs = await form.score(model, { groups, selected });
      let start = 0;
      for (const job of indices) {
        const { wanted, resolve } = jobs[job];
        resolve(logProbs.slice(start, (start += wanted.length)));
      }
    }
  }
}
