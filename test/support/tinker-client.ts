import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeForwardBackward,
  type ForwardBackwardOutput,
  type SampleResponse,
  type TrainingDatum,
  type WireTensor,
} from "../../src/tinker/wire/index.js";

/** Any JSON; tests check its fields. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Json = any;

/** A list of numbers, or a matrix. */
export type Numbers = readonly number[] | readonly (readonly number[])[];

/** Writes numbers as a tensor of the Tinker API. */
export function toTensor(numbers: Numbers, dtype: "float32" | "int64" = "float32"): WireTensor {
  const [first] = numbers;
  const shape = Array.isArray(first) ? [numbers.length, first.length] : [numbers.length];
  return { dtype, shape, data: (numbers as number[]).flat() };
}

/** Builds a datum from its tokens, targets and further inputs of the loss. */
export function toDatum(
  tokens: readonly number[],
  targets: Numbers,
  inputs: Readonly<Record<string, Numbers>> = {},
): TrainingDatum {
  const others = Object.entries(inputs).map(([name, values]) => [name, toTensor(values)] as const);
  return { tokens, lossFnInputs: { target_tokens: toTensor(targets, "int64"), ...Object.fromEntries(others) } };
}

/** A response with its status; JSON, or the bytes of a protobuf message. */
export interface TinkerResponse {
  readonly status: number;
  readonly body: Json;
}

/** Sends requests of the Tinker API, one at a time, and waits for results as the SDK does. */
export class TinkerTestClient {
  constructor(
    readonly url: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async request(
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<TinkerResponse> {
    const isBytes = body instanceof Uint8Array;
    const response = await fetch(`${this.url}/api/v1/${path}`, {
      method,
      headers: {
        "content-type": isBytes ? "application/x-protobuf" : "application/json",
        ...this.headers,
        ...headers,
      },
      body: body === undefined ? undefined : isBytes ? new Uint8Array(body) : JSON.stringify(body),
    });
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: response.status,
      body: isJson ? await response.json() : new Uint8Array(await response.arrayBuffer()),
    };
  }

  /** Sends a request. @throws for another status than 200. */
  async post(path: string, body: object): Promise<Json> {
    return this.expectOk(await this.request("POST", path, body), path);
  }

  async get(path: string): Promise<Json> {
    return this.expectOk(await this.request("GET", path), path);
  }

  /** Waits for the result of a request. @throws for one that failed. */
  async wait(requestId: string): Promise<Json> {
    for (;;) {
      const result = await this.post("retrieve_future", { request_id: requestId, allow_metadata_only: true });
      if (result.error !== undefined) throw new Error(`${result.category}: ${result.error}`);
      if (result.type !== "try_again") return result;
    }
  }

  /** Sends a request and waits for its result. */
  async run(path: string, body: object): Promise<Json> {
    return this.wait((await this.post(path, body)).request_id);
  }

  async createSession(): Promise<string> {
    return (await this.post("create_session", { tags: [], sdk_version: "0.38.0" })).session_id;
  }

  async sample(body: object): Promise<SampleResponse> {
    return decodeSampleResponse(await this.run("asample", body));
  }

  private expectOk({ status, body }: TinkerResponse, path: string): Json {
    if (status === 200) return body;
    throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  }
}

/** A model that is trained over the Tinker API; it numbers its requests. */
export class TinkerTestModel {
  private seqId = 0;

  constructor(
    readonly client: TinkerTestClient,
    readonly id: string,
  ) {}

  static async create(client: TinkerTestClient, session: string, options: object, seq = 0): Promise<TinkerTestModel> {
    const body = { session_id: session, model_seq_id: seq, ...options };
    return new TinkerTestModel(client, (await client.run("create_model", body)).model_id);
  }

  /** Creates a model from a checkpoint. */
  static async load(
    client: TinkerTestClient,
    session: string,
    path: string,
    { optimizer = true, seq = 0 } = {},
  ): Promise<TinkerTestModel> {
    const body = { session_id: session, model_seq_id: seq, path, optimizer };
    return new TinkerTestModel(client, (await client.run("load_weights", body)).model_id);
  }

  async pass(
    lossFn: string,
    data: readonly TrainingDatum[],
    { config = {}, forwardOnly = false, seqId = ++this.seqId }: PassOptions = {},
  ): Promise<ForwardBackwardOutput> {
    const body = encodeForwardBackward({ modelId: this.id, seqId, data, lossFn, lossFnConfig: config, forwardOnly });
    return decodeForwardBackwardOutput(await this.client.run("forward_backward", body));
  }

  /** Returns the norm of the gradient. */
  async step(params: object = {}): Promise<number> {
    return (await this.run("optim_step", { adam_params: params })).metrics["grad_norm:mean"];
  }

  /** Sends another request of the model and waits for its result. */
  async run(path: string, body: object = {}): Promise<Json> {
    return this.client.run(path, { model_id: this.id, seq_id: ++this.seqId, ...body });
  }

  /** Takes a snapshot. Returns its sampling session. */
  async snapshot(seq: number): Promise<string> {
    return (await this.run("save_weights_for_sampler", { sampling_session_seq_id: seq })).sampling_session_id;
  }
}

interface PassOptions {
  readonly config?: Readonly<Record<string, number | string>>;
  readonly forwardOnly?: boolean;
  readonly seqId?: number;
}
