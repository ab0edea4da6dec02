import { LlamaGymError } from "../../core/errors.js";

/** Rejects calls that overlap: each depends on the state left by the previous one. */
export class CallGuard {
  /** Name of the call that has not returned yet. */
  private pendingCall: string | undefined;

  /** @throws INVALID_STATE during a call. */
  check(name: string): void {
    if (this.pendingCall === undefined) return;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${name}() was called before ${this.pendingCall}() returned. Await each call.`,
    );
  }

  /** Runs a call exclusively. @throws INVALID_STATE during a call. */
  async run<Result>(name: string, call: () => Promise<Result>): Promise<Result> {
    this.check(name);
    this.pendingCall = name;
    try {
      return await call();
    } finally {
      this.pendingCall = undefined;
    }
  }
}
