import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError, errorMessage, type ErrorCode } from "../../core/errors.js";
import type { GradientLimits, GradientTransport, GradientJob, GradientResult } from "../../rl/algorithms/index.js";
import type { RolloutJob, RolloutJobResult, RolloutTransport, TrainedWeights } from "../../rl/rollout/index.js";
import type { JobLog } from "./job-log.js";
import { bytesOf, sha256 } from "./encoding.js";
import { decodeGradients, describeGradientJob } from "./gradient-wire.js";
import { JobLostError, MAX_LOSSES, URGENT, type JobAnswer, type LearnerQueue } from "./job-queue.js";
import { decodeResult, encodeMessage, readFailure } from "./wire.js";

/**
 * Published weights that are kept: those of rollouts of the largest staleness and two more, and of
 * the last optimizer steps.
 */
const KEPT_VERSIONS = 6;
const KEPT_STEPS = 2;

/** Time without any worker after which a message asks for one. */
const NO_WORKER_MS = 10_000;

/**
 * Times that a job is repeated because of unusable results, also of a worker that ignores its
 * refusal.
 */
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

/** A job as it is sent, and how its answer is read. */
interface Request<Result> {
  readonly message: object;
  /** Updates behind the weights of the job. */
  readonly version: number;
  readonly isUrgent: boolean;
  /** @throws for an unusable answer */
  readonly decode: (payload: Uint8Array) => Promise<{ readonly seconds: number; readonly result: Result }>;
}

/** Carries jobs through a queue, and checks what workers return. */
export class QueueTransport implements RolloutTransport, GradientTransport {
  /** Hashes of weights by version. */
  private readonly hashes = new Map<number, string>();
  /** Hashes of past opponents by version. */
  private readonly pastHashes = new Map<number, string>();
  /** Hashes of the last optimizer steps' weights. */
  private readonly steps: string[] = [];
  private readonly waiting: NodeJS.Timeout;
  private readonly refused = new Set<string>();
  /** Jobs that are submitted and not answered. */
  private pending = 0;

  constructor(private readonly options: QueueTransportOptions) {
    this.waiting = setInterval(() => void this.warnWithoutWorkers().catch(() => {}), NO_WORKER_MS);
    this.waiting.unref();
  }

  async publish({ version, values }: TrainedWeights): Promise<void> {
    await this.putVersion(this.hashes, version, values);
  }

  async publishPast({ version, values }: TrainedWeights): Promise<void> {
    await this.putVersion(this.pastHashes, version, values);
  }

  async publishStep(values: Float32Array): Promise<void> {
    this.steps.push(await this.put(values));
    for (const old of this.steps.splice(0, this.steps.length - KEPT_STEPS)) await this.drop(old);
  }

  /**
   * @throws what the agent or the environment threw on the worker, INVALID_STATE for a job that no
   * worker completed.
   */
  async run(job: RolloutJob): Promise<RolloutJobResult> {
    const { weightsVersion: version, pastVersion } = job;
    const past = pastVersion === undefined ? {} : { past: this.pastHashes.get(pastVersion) };
    const weights = this.hashes.get(version);
    if (weights === undefined)
      throw new LlamaGymError("INVALID_STATE", `Weights of version ${version} are not published.`);
    const result = await this.request({
      message: { job, weights, ...past },
      version,
      isUrgent: false,
      decode: async (payload) => {
        const { seconds, ...answer } = await decodeResult(payload, { vocabSize: this.options.vocabSize, job });
        return { seconds, result: answer };
      },
    });
    if ("error" in result) throw new LlamaGymError(result.error.code as ErrorCode, result.error.message);
    return result.result;
  }

  /** @throws INVALID_STATE for a job that no worker completed. */
  async computeGradients(job: GradientJob, limits: GradientLimits): Promise<GradientResult> {
    return this.request({
      message: { gradients: describeGradientJob(job), weights: this.steps.at(-1) },
      version: this.newestVersion,
      isUrgent: true,
      decode: async (payload) => decodeGradients(payload, limits),
    });
  }

  async close(isFinished = false): Promise<void> {
    clearInterval(this.waiting);
    await this.options.queue.close(isFinished);
    this.options.log?.close();
  }

  private get newestVersion(): number {
    return Math.max(0, ...this.hashes.keys());
  }

  /** Makes a version available, and removes old ones. */
  private async putVersion(hashes: Map<number, string>, version: number, values: Float32Array): Promise<void> {
    const hash = await this.put(values);
    // The versions that are kept are the last used ones.
    hashes.delete(version);
    hashes.set(version, hash);
    for (const old of [...hashes.keys()].slice(0, -KEPT_VERSIONS)) {
      const oldHash = hashes.get(old)!;
      hashes.delete(old);
      await this.drop(oldHash);
    }
  }

  /** Makes weights available, and returns their hash. */
  private async put(values: Float32Array): Promise<string> {
    const bytes = bytesOf(values);
    const hash = sha256(bytes);
    await this.options.queue.putWeights(hash, bytes);
    return hash;
  }

  /** Removes weights unless another version has the same ones. */
  private async drop(hash: string): Promise<void> {
    const used = [...this.hashes.values(), ...this.pastHashes.values(), ...this.steps];
    if (!used.includes(hash)) await this.options.queue.removeWeights(hash);
  }

  /**
   * Sends a job until a worker returns a usable answer. @throws RUNTIME_FAILED for a job that is
   * set aside.
   */
  private async request<Result>(request: Request<Result>): Promise<Result> {
    const { message, isUrgent } = request;
    const payload = await encodeMessage(message);
    // The id is the job's content, so that a resumed learner finds the answers to its earlier jobs.
    const baseId = (isUrgent ? URGENT : "") + sha256(`${this.options.run} ${sha256(payload)}`);
    const refused = new Set<string>();
    let failures = 0;
    let reason = "";
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && refused.size + failures < MAX_LOSSES; attempt++) {
      const id = attempt === 1 ? baseId : `${baseId}-${attempt}`;
      const answer = await this.attempt(id, request, payload);
      if (answer.isRefused) {
        refused.add(answer.worker);
        await this.refuse(answer.worker, answer.reason);
      }
      await this.options.queue.remove(id);
      if (answer.decoded !== undefined) return answer.decoded.result;
      ({ reason } = answer);
      if (!answer.isRefused) failures++;
      // Leaves the job to any of the workers, and gives a refused one time to notice.
      await sleep(RETRY_MS);
    }
    throw await this.lost(baseId, message, `workers could not run it, at last for this reason: ${reason}`);
  }

  /** Awaits a worker's answer, and logs it. */
  private async attempt<Result>(
    id: string,
    { message, version, isUrgent, decode }: Request<Result>,
    payload: Uint8Array,
  ) {
    const { queue, log } = this.options;
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
    const line = {
      time: Date.now(),
      worker,
      queued,
      version,
      step: this.newestVersion,
      pending: this.pending + 1,
      jobBytes: payload.length,
      answerBytes: answer.payload.length,
      ...(isUrgent ? { work: "gradients" as const } : {}),
    };
    const failure = readFailure(answer.payload);
    const unused = (reason: string, isRefused: boolean) => {
      log?.append({ ...line, outcome: isRefused ? "refused" : "failed", reason });
      return { worker, decoded: undefined, reason, isRefused };
    };
    if (failure !== undefined) return unused(failure, false);
    try {
      const decoded = await decode(answer.payload);
      const isError = typeof decoded.result === "object" && decoded.result !== null && "error" in decoded.result;
      const seconds = Number(decoded.seconds.toFixed(4));
      log?.append({ ...line, outcome: isError ? "error" : "used", seconds });
      return { worker, decoded, reason: "", isRefused: false };
    } catch (error) {
      return unused(errorMessage(error), true);
    }
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
      `A job was set aside: ${reason.replace(/\.$/, "")}. Its input is ${path}. Look at the workers' output, then resume the run.`,
    );
  }

  private async warnWithoutWorkers(): Promise<void> {
    if ((await this.options.queue.listWorkers()).length > 0) return;
    this.options.onWarning("The run waits for workers: start `llamagym worker` with the same address.");
  }
}
