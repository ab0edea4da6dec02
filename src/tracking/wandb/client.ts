import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../errors.js";
import { reasonOf } from "../../files/failure.js";

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Milliseconds to wait before each further try of a request that the service did not take. */
  readonly retryDelays: readonly number[];
}

/** No answer after this many milliseconds counts as none. */
const REQUEST_TIMEOUT = 20_000;

/** Speaks to a W&B server. Requests that meet no answer, or a server in trouble, are tried again. */
export class WandbClient {
  private readonly hurried = new AbortController();

  constructor(private readonly options: ClientOptions) {}

  /** From now on a failed request is tried once more at most, and nothing sleeps: the run has ended. */
  hurry(): void {
    this.hurried.abort();
  }

  /** The data that a GraphQL query answers with. Throws TRACKING_FAILED. */
  async query<T>(query: string, variables: Readonly<Record<string, unknown>>): Promise<T> {
    const response = await this.post("/graphql", { query, variables });
    const { data, errors } = (await response.json().catch(() => ({}))) as { data?: T; errors?: { message: string }[] };
    if (errors !== undefined && errors.length > 0) throw this.failure(errors.map(({ message }) => message).join("; "));
    if (data === undefined || data === null) throw this.failure("the answer holds no data");
    return data;
  }

  /** Sends JSON to a path of the server. Throws TRACKING_FAILED. */
  async post(path: string, body: unknown): Promise<Response> {
    const authorization = `Basic ${Buffer.from(`api:${this.options.apiKey}`).toString("base64")}`;
    return this.persist(`${this.options.baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify(body),
    });
  }

  /** Stores a file where the server has said; the address itself is the permission. Throws TRACKING_FAILED. */
  async upload(url: string, headers: Readonly<Record<string, string>>, content: Uint8Array): Promise<void> {
    await this.persist(url, { method: "PUT", headers, body: Uint8Array.from(content) });
  }

  private async persist(url: string, request: RequestInit): Promise<Response> {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT) }).catch(causeOf);
      if (answer instanceof Response && answer.ok) return answer;
      const lasting = answer instanceof Response && answer.status < 500 && answer.status !== 429;
      const most = this.hurried.signal.aborted ? 1 : this.options.retryDelays.length;
      if (lasting || tries >= most) throw await this.refusal(answer);
      await this.pause(this.options.retryDelays[tries] ?? 0);
    }
  }

  private async pause(milliseconds: number): Promise<void> {
    if (this.hurried.signal.aborted) return;
    await sleep(milliseconds, undefined, { ref: false, signal: this.hurried.signal }).catch(() => undefined);
  }

  private async refusal(answer: Response | string): Promise<LlamaGymError> {
    if (typeof answer === "string") return this.failure(`it does not answer (${answer})`);
    if (answer.status === 401 || answer.status === 403)
      return this.failure(`it refuses the key in WANDB_API_KEY (status ${answer.status})`);
    const text = (await answer.text().catch(() => "")).replaceAll(/\s+/g, " ").slice(0, 200);
    return this.failure(`it answers with status ${answer.status}${text === "" ? "" : ` (${text})`}`);
  }

  private failure(reason: string): LlamaGymError {
    return new LlamaGymError("TRACKING_FAILED", `W&B at ${this.options.baseUrl} did not take the run: ${reason}.`);
  }
}

/** fetch says only "fetch failed"; why stands in the cause. */
function causeOf(error: unknown): string {
  return reasonOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
}
