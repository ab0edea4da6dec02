import type { Context } from "hono";
import { nodeBindings } from "./node-bindings.js";
import { clientClosedError, RequestError } from "./request-error.js";

/** Aborts the work on a request when the client leaves or the time is over. */
export class RequestLifetime {
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private end: "left" | "timed out" | undefined;

  constructor(
    context: Context,
    private readonly timeoutMs: number,
  ) {
    this.timer = setTimeout(() => this.abort("timed out"), timeoutMs).unref();
    const { outgoing } = nodeBindings(context);
    // The signal of `context.req.raw` would create a whole Request.
    outgoing?.once("close", () => {
      if (!outgoing.writableFinished) this.leave();
      this.finish();
    });
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get hasLeft(): boolean {
    return this.end === "left";
  }

  /** Aborts because the client has left. */
  leave(): void {
    this.abort("left");
  }

  /** Ends the time limit. */
  finish(): void {
    clearTimeout(this.timer);
  }

  /** @throws RequestError 504 if the time is over, 499 if the client has left. */
  check(): void {
    if (this.end === "timed out")
      throw new RequestError(504, `The request took longer than ${this.timeoutMs / 1000} s.`);
    if (this.end === "left") throw clientClosedError();
  }

  private abort(end: "left" | "timed out"): void {
    this.end ??= end;
    this.controller.abort();
  }
}
