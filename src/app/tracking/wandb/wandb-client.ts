import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage, LlamaGymError } from "../../../core/errors.js";

export interface WandbClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Milliseconds before each retry of a failed request. */
  readonly retryDelaysMs: readonly number[];
}

const REQUEST_TIMEOUT_MS = 20_000;

/**
 * HTTP client of a W&B server. Retries requests after timeouts, connection errors and server
 * errors.
 */
export class WandbClient {
  private readonly retryAbort = new AbortController();

  constructor(private readonly options: WandbClientOptions) {}

  /** Limits later requests to one immediate retry; called when the run has ended. */
  abortRetries(): void {
    this.retryAbort.abort();
  }

  /** Runs a GraphQL query and returns its data. @throws TRACKING_FAILED */
  async query<T>(query: string, variables: Readonly<Record<string, unknown>>): Promise<T> {
    const response = await this.post("/graphql", { query, variables });
    const { data, errors } = (await response.json().catch(() => ({}))) as { data?: T; errors?: { message: string }[] };
    if (errors !== undefined && errors.length > 0)
      throw this.createError(errors.map(({ message }) => message).join("; "));
    if (data === undefined || data === null) throw this.createError("the response has no data");
    return data;
  }

  /** Posts JSON to a path of the server. @throws TRACKING_FAILED */
  async post(path: string, body: unknown): Promise<Response> {
    const authorization = `Basic ${Buffer.from(`api:${this.options.apiKey}`).toString("base64")}`;
    return this.requestWithRetries(`${this.options.baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify(body),
    });
  }

  /** Uploads a file to a presigned URL. @throws TRACKING_FAILED */
  async upload(url: string, headers: Readonly<Record<string, string>>, content: Uint8Array): Promise<void> {
    await this.requestWithRetries(url, { method: "PUT", headers, body: Uint8Array.from(content) });
  }

  private async requestWithRetries(url: string, request: RequestInit): Promise<Response> {
    for (let retries = 0; ; retries++) {
      const response = await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }).catch(
        getCause,
      );
      if (response instanceof Response && response.ok) return response;
      const isPermanent = response instanceof Response && response.status < 500 && response.status !== 429;
      const maxRetries = this.retryAbort.signal.aborted ? 1 : this.options.retryDelaysMs.length;
      if (isPermanent || retries >= maxRetries) throw await this.createRejectionError(response);
      await this.waitBeforeRetry(this.options.retryDelaysMs[retries] ?? 0);
    }
  }

  private async waitBeforeRetry(milliseconds: number): Promise<void> {
    if (this.retryAbort.signal.aborted) return;
    await sleep(milliseconds, undefined, { ref: false, signal: this.retryAbort.signal }).catch(() => undefined);
  }

  private async createRejectionError(response: Response | string): Promise<LlamaGymError> {
    if (typeof response === "string") return this.createError(`no response (${response})`);
    if (response.status === 401 || response.status === 403)
      return this.createError(`it rejects the key in WANDB_API_KEY (status ${response.status})`);
    const text = (await response.text().catch(() => "")).replaceAll(/\s+/g, " ").slice(0, 200);
    return this.createError(`status ${response.status}${text === "" ? "" : ` (${text})`}`);
  }

  private createError(reason: string): LlamaGymError {
    return new LlamaGymError("TRACKING_FAILED", `W&B at ${this.options.baseUrl} failed: ${reason}.`);
  }
}

/** Describes a failed fetch by its cause; the error itself is only "fetch failed". */
function getCause(error: unknown): string {
  return errorMessage(error instanceof Error && error.cause !== undefined ? error.cause : error);
}
