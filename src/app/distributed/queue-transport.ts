import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError, errorMessage, type ErrorCode } from "../../core/errors.js";
import type { RolloutJob, RolloutJobResult, RolloutTransport, TrainedWeights } from "../../rl/rollout/rollout-job.js";
import type { JobLog } from "./job-log.js";
import { JobLostError, MAX_LOSSES, type JobAnswer, type LearnerQueue } from "./job-queue.js";
import { decodeResult, encodeMessage, sha256, type JobMessage, type ResultMessage } from "./wire.js";

/** Published versions whose hashes are kept: those of the largest staleness, and more. */
const MAX_VERSIONS = 16;

/** Time without any worker after which a message asks for one. */
const NO_WORKER_MS = 10_000;

/** Times that a job is repeated because of unusable results, also of a worker that ignores its refusal. */
const MAX_ATTEMPTS = 100;
const RETRY_MS = 100;

export interface QueueTransportOptions {
  readonly queue: LearnerQueue;
  readonly vocabSize: number;
  /** Part of every job's id. */
  readonly run: string;
  readonly onWarning: (message: string) => void;
  /** Stores the input of a job that ended several workers, and returns where. */
  readonly setAside: (id: string, message: object) => Promise<string>;
  readonly log?: JobLog;
}

/** Carries jobs through a queue, and checks what workers return. */
export class QueueTransport implements RolloutTransport {
  private readonly hashes = new Map<number, string>();
  private readonly waiting: NodeJS.Timeout;
  private readonly refused = new Set<string>();
  /** Jobs that are submitted and not answered. */
  private pending = 0;

  constructor(private readonly options: QueueTransportOptions) {
    this.waiting = setInterval(() => void this.warnWithoutWorkers().catch(() => {}), NO_WORKER_MS);
    this.waiting.unref();
  }

  async publish({ version, values }: TrainedWeights): Promise<void> {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const hash = sha256(bytes);
    await this.options.queue.putWeights(hash, bytes);
    this.hashes.set(version, hash);
    for (const old of [...this.hashes.keys()].slice(0, -MAX_VERSIONS)) this.hashes.delete(old);
  }

  /** @throws what the agent or the environment threw on the worker, INVALID_STATE for a job that no worker completed. */
  async run(job: RolloutJob): Promise<RolloutJobResult> {
    const weights = this.hashes.get(job.weightsVersion);
    if (weights === undefined)
      throw new LlamaGymError("INVALID_STATE", `Weights of version ${job.weightsVersion} are not published.`);
    const message = { job, weights };
    const payload = await encodeMessage(message);
    // The id is the job's content, so that a resumed learner finds the answers to its earlier jobs.
    const baseId = sha256(JSON.stringify([this.options.run, message]));
    const refused = new Set<string>();
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && refused.size < MAX_LOSSES; attempt++) {
      const id = attempt === 1 ? baseId : `${baseId}-${attempt}`;
      const { worker, result, reason } = await this.attempt(id, message, payload);
      if (result === undefined) {
        refused.add(worker);
        await this.refuse(worker, reason);
        await this.options.queue.remove(id);
        // The worker may need a moment to find out that it is refused.
        await sleep(RETRY_MS);
        continue;
      }
      await this.options.queue.remove(id);
      if ("error" in result) throw new LlamaGymError(result.error.code as ErrorCode, result.error.message);
      return result.result;
    }
    throw await this.lost(baseId, message, `the results of ${refused.size} workers are unusable`);
  }

  /** Awaits a worker's answer, and logs it. */
  private async attempt(
    id: string,
    message: JobMessage,
    payload: Uint8Array,
  ): Promise<{ readonly worker: string; readonly result?: ResultMessage; readonly reason: string }> {
    const { queue, vocabSize, log } = this.options;
    const { job } = message;
    const queued = Date.now();
    this.pending++;
    let answer: JobAnswer;
    try {
      answer = await queue.submit(id, payload);
    } catch (error) {
      if (!(error instanceof JobLostError)) throw error;
      throw await this.lost(id, message, error.message);
    } finally {
      this.pending--;
    }
    const { worker } = answer;
    const time = Date.now();
    const line = {
      time,
      worker,
      queued,
      version: job.weightsVersion,
      step: Math.max(...this.hashes.keys()),
      pending: this.pending + 1,
      jobBytes: payload.length,
      answerBytes: answer.payload.length,
    };
    try {
      const result = await decodeResult(answer.payload, { vocabSize, job });
      const { seconds } = result;
      log?.append({ ...line, outcome: "error" in result ? "error" : "used", seconds: Number(seconds.toFixed(4)) });
      return { worker, result, reason: "" };
    } catch (error) {
      const reason = errorMessage(error);
      log?.append({ ...line, outcome: "refused", reason });
      return { worker, reason };
    }
  }

  async close(isFinished = false): Promise<void> {
    clearInterval(this.waiting);
    await this.options.queue.close(isFinished);
    this.options.log?.close();
  }

  private async refuse(worker: string, reason: string): Promise<void> {
    const { queue, onWarning } = this.options;
    await queue.refuse(worker, reason);
    if (this.refused.has(worker)) return;
    this.refused.add(worker);
    onWarning(`Worker ${worker} returned an unusable result and gets no more jobs of this run: ${reason}`);
  }

  private async lost(id: string, message: object, reason: string): Promise<LlamaGymError> {
    const path = await this.options.setAside(id, message);
    // A resumed run tries the job again.
    await this.options.queue.remove(id);
    return new LlamaGymError(
      "RUNTIME_FAILED",
      `A job was set aside: ${reason}. Its input is ${path}. Look at the workers' output, then resume the run.`,
    );
  }

  private async warnWithoutWorkers(): Promise<void> {
    if ((await this.options.queue.listWorkers()).length > 0) return;
    this.options.onWarning("The run waits for workers: start `llamagym worker` with the same address.");
  }
}
