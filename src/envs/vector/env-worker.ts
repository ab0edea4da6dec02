import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { LlamaGymError, type ErrorCode } from "../../errors.js";
import type { WorkerCall, WorkerReply, WorkerSetup } from "./worker-protocol.js";

/** Milliseconds that a thread may take to start and to load its environments, beside its first call. */
const START_ALLOWANCE = 60_000;

interface Pending {
  readonly resolve: (values: readonly unknown[]) => void;
  readonly reject: (error: LlamaGymError) => void;
  readonly timer: NodeJS.Timeout | undefined;
}

/** A worker thread with some of a vector's environments. Every call is answered, or fails after `timeout` milliseconds. */
export class EnvWorker {
  private readonly worker: Worker;
  private readonly pending = new Map<number, Pending>();
  private number = 0;
  private hasAnswered = false;
  /** Why it can answer no more. */
  private dead: LlamaGymError | undefined;

  constructor(
    readonly setup: WorkerSetup,
    private readonly timeout: number,
  ) {
    // The built file, also where this one runs from source.
    this.worker = new Worker(createRequire(import.meta.url).resolve("#envs-worker"), { workerData: setup });
    this.worker.on("message", (reply: WorkerReply) => this.settle(reply));
    this.worker.on("error", (error) => this.die(`threw outside of a call: ${String(error)}`));
    this.worker.on("exit", (code) => this.die(`ended with exit code ${code}`));
    this.worker.unref();
  }

  /** Whether it died or did not answer in time; such a worker must be replaced. */
  get isDead(): boolean {
    return this.dead !== undefined;
  }

  async call(call: WorkerCall): Promise<readonly unknown[]> {
    if (this.dead !== undefined) throw this.dead;
    const number = this.number++;
    return await new Promise((resolve, reject) => {
      const limit = this.timeout + (this.hasAnswered ? 0 : START_ALLOWANCE);
      const expire = () => this.die(`did not answer ${call.method}() within ${limit} ms`);
      const timer = Number.isFinite(limit) ? setTimeout(expire, limit) : undefined;
      this.pending.set(number, { resolve, reject, timer });
      this.worker.ref();
      try {
        this.worker.postMessage({ number, call });
      } catch (error) {
        this.settle({
          number,
          error: {
            code: "INVALID_ARGUMENT",
            message: `The arguments of ${call.method}() cannot be sent to a worker: ${String(error)}`,
          },
        });
      }
    });
  }

  async terminate(): Promise<void> {
    this.die("was closed");
    await this.worker.terminate();
  }

  private settle(reply: WorkerReply): void {
    const pending = this.pending.get(reply.number);
    if (pending === undefined) return;
    this.hasAnswered = true;
    this.pending.delete(reply.number);
    clearTimeout(pending.timer);
    if (this.pending.size === 0) this.worker.unref();
    if ("values" in reply) {
      pending.resolve(reply.values);
    } else {
      const { code = "ENV_FAILED", message } = reply.error;
      pending.reject(new LlamaGymError(code as ErrorCode, message));
    }
  }

  private die(reason: string): void {
    if (this.dead !== undefined) return;
    const { firstIndex, count } = this.setup;
    const which = count === 1 ? `environment ${firstIndex}` : `environments ${firstIndex} to ${firstIndex + count - 1}`;
    this.dead = new LlamaGymError("ENV_FAILED", `The worker of ${which} ${reason}.`);
    for (const { reject, timer } of this.pending.values()) {
      clearTimeout(timer);
      reject(this.dead);
    }
    this.pending.clear();
    void this.worker.terminate();
  }
}
