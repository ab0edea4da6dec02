import { z } from "zod";
import type { LlamaGymError } from "../../core/errors.js";
import { sleep } from "../../core/sleep.js";
import {
  clientConfig,
  completeMetadata,
  createSessionResponse,
  requestFailed,
  serverCapabilities,
  tryAgain,
  untypedFuture,
} from "../wire/responses.js";
import {
  SDK_VERSION,
  ServiceConnection,
  ServiceError,
  type ConnectionOptions,
  type ServiceAnswer,
  type ServiceRequest,
} from "./service-connection.js";

/** A service that does not answer the first request is probably not there. */
const CONNECT_SECONDS = 5;
const HEARTBEAT_MS = 10_000;
/** The service holds a request for a result that is not there yet; longer than it does so. */
const RETRIEVE_TIMEOUT_MS = 60_000;
/** Shortest time between two requests for a result, for a service that does not hold them. */
const MIN_POLL_MS = 100;
/** Some proxies answer 400 although the request is right. */
const MAX_BAD_REQUESTS = 3;
const BAD_REQUEST_DELAY_MS = 500;
/** For a failure that may be gone when the run asks again: the service was restarted, or failed. */
const RESUME = "Resume the run: it continues from its last checkpoint.";

/** The result of a request that the service no longer has. */
export class ResultGoneError extends ServiceError {}

/** A session with a service: its heartbeat, and the results of slow requests. */
export class ServiceSession {
  private readonly heartbeat: ReturnType<typeof setInterval>;
  private end: LlamaGymError | undefined;
  private isBeating = false;

  private constructor(
    readonly connection: ServiceConnection,
    readonly id: string,
    readonly config: z.infer<typeof clientConfig>,
  ) {
    this.heartbeat = setInterval(() => void this.beat(), HEARTBEAT_MS);
    // A session alone does not keep the process running.
    (this.heartbeat as { unref?: () => void }).unref?.();
  }

  /** Opens a session. @throws SERVICE_FAILED */
  static async open(options: ConnectionOptions): Promise<ServiceSession> {
    const connection = new ServiceConnection(options);
    const configAnswer = await connection.send({
      path: "client/config",
      json: { sdk_version: SDK_VERSION },
      maxWaitSeconds: CONNECT_SECONDS,
    });
    const config = readAnswer("client/config", clientConfig, configAnswer.json);
    if (config.pjwt_auth_enabled) {
      const token = await connection.send({ path: "auth/token" });
      connection.useKey(readAnswer("auth/token", z.object({ jwt: z.string() }), token.json).jwt);
    }
    const created = await connection.send({
      path: "create_session",
      json: { tags: ["llamagym"], user_metadata: null, sdk_version: SDK_VERSION, type: "create_session" },
    });
    return new ServiceSession(
      connection,
      readAnswer("create_session", createSessionResponse, created.json).session_id,
      config,
    );
  }

  /** Sends a request and reads its JSON answer. */
  async call<Result>(request: ServiceRequest, schema: z.ZodType<Result>): Promise<Result> {
    this.checkOpen();
    return readAnswer(request.path, schema, (await this.connection.send(request)).json);
  }

  /** Sends a request whose result is retrieved later, and returns its id. */
  async submit(request: ServiceRequest): Promise<string> {
    return (await this.call(request, untypedFuture)).request_id;
  }

  /**
   * Waits for the result of a request.
   * @throws SERVICE_FAILED if the request failed, ResultGoneError if the service has dropped its
   * result.
   */
  async retrieve(requestId: string, kind: string): Promise<ServiceAnswer> {
    let badRequests = 0;
    for (let iteration = 0; ; iteration++) {
      const asked = performance.now();
      const answer = await this.connection.send({
        path: "retrieve_future",
        json: { request_id: requestId, allow_metadata_only: false },
        acceptsProtobuf: true,
        headers: { "x-tinker-request-type": kind, "x-tinker-request-iteration": String(iteration) },
        timeoutMs: RETRIEVE_TIMEOUT_MS,
        expectedStatuses: [400, 408, 410],
      });
      this.checkOpen();
      if (answer.status === 410)
        throw new ResultGoneError(`${this.connection.baseUrl} no longer has the result of ${kind}. ${RESUME}`, 410);
      if (answer.status === 400) {
        if (++badRequests > MAX_BAD_REQUESTS)
          throw new ServiceError(`${kind} failed at ${this.connection.baseUrl}: ${JSON.stringify(answer.json)}`, 400);
        await sleep(BAD_REQUEST_DELAY_MS);
        continue;
      }
      if (answer.bytes !== undefined) return answer;
      const isPending = answer.status === 408 || tryAgain.safeParse(answer.json).success;
      if (isPending || completeMetadata.safeParse(answer.json).success) {
        await sleep(Math.max(0, MIN_POLL_MS - (performance.now() - asked)));
        continue;
      }
      const failed = requestFailed.safeParse(answer.json);
      if (failed.success) {
        const { error, category } = failed.data;
        const problem = `${kind} failed at ${this.connection.baseUrl}: ${error}`;
        throw new ServiceError(category === "user" ? problem : `${problem.replace(/\.$/u, "")}. ${RESUME}`, undefined);
      }
      return answer;
    }
  }

  /**
   * The models of the service with their context lengths; empty for a service that does not list
   * them.
   */
  async listModels(): Promise<z.infer<typeof serverCapabilities>["supported_models"]> {
    const answer = await this.connection.send({
      path: "get_server_capabilities",
      method: "GET",
      expectedStatuses: [404, 405],
    });
    return serverCapabilities.safeParse(answer.json).data?.supported_models ?? [];
  }

  /** Ends the session; a service without the route keeps it until its heartbeat stops. */
  async close(): Promise<void> {
    clearInterval(this.heartbeat);
    if (this.end === undefined)
      await Promise.race([
        this.connection
          .send({
            path: `sessions/${encodeURIComponent(this.id)}/finish`,
            json: { reason: { type: "success" } },
            expectedStatuses: [400, 404, 405, 410],
          })
          .catch(() => {}),
        sleep(2000),
      ]);
    this.end ??= new ServiceError("The session was closed.", undefined);
    this.connection.close();
  }

  private async beat(): Promise<void> {
    if (this.isBeating) return;
    this.isBeating = true;
    const { status } = await this.connection
      .send({
        path: "session_heartbeat",
        json: { session_id: this.id },
        expectedStatuses: [400, 404, 410],
        timeoutMs: HEARTBEAT_MS,
      })
      .catch(() => ({ status: undefined }));
    this.isBeating = false;
    if (status !== 410) return;
    clearInterval(this.heartbeat);
    this.end = new ServiceError(`${this.connection.baseUrl} has ended the session. ${RESUME}`, 410);
  }

  private checkOpen(): void {
    if (this.end !== undefined) throw this.end;
  }
}

/** Reads an answer. @throws SERVICE_FAILED for one of another form. */
export function readAnswer<Result>(path: string, schema: z.ZodType<Result>, json: unknown): Result {
  const { data, error } = schema.safeParse(json);
  if (error === undefined) return data;
  const [issue] = error.issues;
  throw new ServiceError(
    `The answer to ${path} is not one of the Tinker API: ${issue.path.join(".")} ${issue.message}.`,
    undefined,
  );
}
