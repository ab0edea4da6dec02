import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../../core/errors.js";
import { errorMessage } from "../../../models/files/file-errors.js";

export interface WandbClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Milliseconds to wait before each further try of a request that the service did not take. */
  readonly retryDelaysMs: readonly number[];
}

/** No answer after this many milliseconds counts as none. */
const REQUEST_TIMEOUT_MS = 20_000;

/** Speaks to a W&B server. Requests that meet no answer, or a server in trouble, are tried again. */
export class WandbClient {
  private readonly retryAbort = new AbortController();

  constructor(private readonly options: WandbClientOptions) {}

  /** From now on a failed request is tried once more at most, and nothing sleeps: the run has ended. */
  abortRetries(): void {
    this.retryAbort.abort();
  }

  /** The data that a GraphQL query answers with. Throws TRACKING_FAILED. */
  async query<T>(query: string, variables: Readonly<Record<string, unknown>>): Promise<T> {
    const response = await this.post("/graphql", { query, variables });
    const { data, errors } = (await response.json().catch(() => ({}))) as { data?: T; errors?: { message: string }[] };
    if (errors !== undefined && errors.length > 0)
      throw this.createError(errors.map(({ message }) => message).join("; "));
    if (data === undefined || data === null) throw this.createError("the answer holds no data");
    return data;
  }

  /** Sends JSON to a path of the server. Throws TRACKING_FAILED. */
  async post(path: string, body: unknown): Promise<Response> {
    const authorization = `Basic ${Buffer.from(`api:${this.options.apiKey}`).toString("base64")}`;
    return this.requestWithRetries(`${this.options.baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify(body),
    });
  }

  /** Stores a file where the server has said; the address itself is the permission. Throws TRACKING_FAILED. */
  async upload(url: string, headers: Readonly<Record<string, string>>, content: Uint8Array): Promise<void> {
    await this.requestWithRetries(url, { method: "PUT", headers, body: Uint8Array.from(content) });
  }

  private async requestWithRetries(url: string, request: RequestInit): Promise<Response> {
    for (let retries = 0; ; retries++) {
      const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }).catch(getCause);
      if (answer instanceof Response && answer.ok) return answer;
      const isPermanent = answer instanceof Response && answer.status < 500 && answer.status !== 429;
      const maxRetries = this.retryAbort.signal.aborted ? 1 : this.options.retryDelaysMs.length;
      if (isPermanent || retries >= maxRetries) throw await this.createRejectionError(answer);
      await this.waitBeforeRetry(this.options.retryDelaysMs[retries] ?? 0);
    }
  }

  private async waitBeforeRetry(milliseconds: number): Promise<void> {
    if (this.retryAbort.signal.aborted) return;
    await sleep(milliseconds, undefined, { ref: false, signal: this.retryAbort.signal }).catch(() => undefined);
  }

  private async createRejectionError(answer: Response | string): Promise<LlamaGymError> {
    if (typeof answer === "string") return this.createError(`it does not answer (${answer})`);
    if (answer.status === 401 || answer.status === 403)
      return this.createError(`it refuses the key in WANDB_API_KEY (status ${answer.status})`);
    const text = (await answer.text().catch(() => "")).replaceAll(/\s+/g, " ").slice(0, 200);
    return this.createError(`it answers with status ${answer.status}${text === "" ? "" : ` (${text})`}`);
  }

  private createError(reason: string): LlamaGymError {
    return new LlamaGymError("TRACKING_FAILED", `W&B at ${this.options.baseUrl} did not take the run: ${reason}.`);
  }
}

/** fetch says only "fetch failed"; why stands in the cause. */
function getCause(error: unknown): string {
  return errorMessage(error instanceof Error && error.cause !== undefined ? error.cause : error);
}
