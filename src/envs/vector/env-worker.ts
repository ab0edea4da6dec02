import { startWorker } from "#platform";
import { LlamaGymError, type ErrorCode } from "../../core/errors.js";
import type { ComputeWorker } from "../../core/platform/ports.js";
import type { EnvWorkerCall, EnvWorkerResponse, EnvWorkerSetup } from "./worker-protocol.js";

/** Time limit for a thread to start and load its environments, in addition to its first call. */
const STARTUP_ALLOWANCE_MS = 60_000;

interface PendingCall {
  readonly resolve: (values: readonly unknown[]) => void;
  readonly reject: (error: LlamaGymError) => void;
  readonly timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * A worker thread with some of a vector's environments. Calls fail after `timeout` milliseconds.
 */
export class EnvWorker {
  private readonly worker: ComputeWorker;
  private readonly pending = new Map<number, PendingCall>();
  private callId = 0;
  private hasResponded = false;
  /** The error that ended the worker. */
  private failure: LlamaGymError | undefined;

  constructor(
    readonly setup: EnvWorkerSetup,
    private readonly timeout: number,
  ) {
    this.worker = startWorker<EnvWorkerResponse>("#envs-worker", {
      data: setup,
      inheritFlags: true,
      onMessage: (response) => this.handleResponse(response),
      onError: (error) => this.fail(`threw outside of a call: ${String(error)}`),
      onExit: (code) => this.fail(`ended with exit code ${code}`),
    });
  }

  /** Whether it ended or timed out and must be replaced. */
  get isDead(): boolean {
    return this.failure !== undefined;
  }

  async call(call: EnvWorkerCall): Promise<readonly unknown[]> {
    if (this.failure !== undefined) throw this.failure;
    const callId = this.callId++;
    return await new Promise((resolve, reject) => {
      const timeoutMs = this.timeout + (this.hasResponded ? 0 : STARTUP_ALLOWANCE_MS);
      const expire = () => this.fail(`did not answer ${call.method}() within ${timeoutMs} ms`);
      const timer = Number.isFinite(timeoutMs) ? setTimeout(expire, timeoutMs) : undefined;
      this.pending.set(callId, { resolve, reject, timer });
      this.worker.ref();
      try {
        this.worker.post({ id: callId, call });
      } catch (error) {
        this.handleResponse({
          id: callId,
          error: {
            code: "INVALID_ARGUMENT",
            message: `The arguments of ${call.method}() are not cloneable and cannot be sent to a worker: ${String(error)}`,
          },
        });
      }
    });
  }

  async terminate(): Promise<void> {
    this.fail("was closed");
    await this.worker.terminate();
  }

  private handleResponse(response: EnvWorkerResponse): void {
    const pending = this.pending.get(response.id);
    if (pending === undefined) return;
    this.hasResponded = true;
    this.pending.delete(response.id);
    clearTimeout(pending.timer);
    if (this.pending.size === 0) this.worker.unref();
    if ("values" in response) {
      pending.resolve(response.values);
    } else {
      const { code = "ENV_FAILED", message } = response.error;
      pending.reject(new LlamaGymError(code as ErrorCode, message));
    }
  }

  private fail(reason: string): void {
    if (this.failure !== undefined) return;
    const { firstIndex, count } = this.setup;
    const which = count === 1 ? `environment ${firstIndex}` : `environments ${firstIndex} to ${firstIndex + count - 1}`;
    this.failure = new LlamaGymError("ENV_FAILED", `The worker of ${which} ${reason}.`);
    for (const { reject, timer } of this.pending.values()) {
      clearTimeout(timer);
      reject(this.failure);
    }
    this.pending.clear();
    void this.worker.terminate();
  }
}
