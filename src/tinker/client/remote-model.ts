import type { z } from "zod";
import {
  decodeForwardBackwardOutput,
  encodeForwardBackward,
  type ForwardBackwardOutput,
  type TrainingDatum,
} from "../wire/forward-backward.js";
import {
  createModelResponse,
  getInfoResponse,
  loadWeightsResponse,
  optimStepResponse,
  savedWeights,
} from "../wire/responses.js";
import { ServiceError, type ServiceRequest } from "./service-connection.js";
import { readAnswer, type ServiceSession } from "./service-session.js";

/** The adapter of a model that a service trains. */
export interface ServiceAdapter {
  readonly baseModel: string;
  readonly rank: number;
  readonly seed: number;
  readonly trainAttn: boolean;
  readonly trainMlp: boolean;
  readonly trainUnembed: boolean;
}

/** Parameters of an AdamW step. */
export interface AdamStep {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** 0 for none. */
  readonly maxGradNorm: number;
}

/** Options of a training pass. */
export interface PassOptions {
  readonly lossFn: string;
  readonly forwardOnly?: boolean;
  /** Settings of the loss. */
  readonly config?: Readonly<Record<string, number>>;
}

/** Bytes of a token, and of a number in an input of the loss with what lists of cells add. */
const BYTES_PER_TOKEN = 4;
const BYTES_PER_VALUE = 10;

/**
 * A model that the service trains: its requests are numbered and sent one after another, and
 * executed in this order.
 */
export class RemoteModel {
  private lastSeqId = 0;
  /** Ends when the last request was accepted. */
  private submitted: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly session: ServiceSession,
    readonly id: string,
  ) {}

  /** Creates a model with a new adapter. @throws SERVICE_FAILED */
  static async create(session: ServiceSession, seqId: number, form: ServiceAdapter): Promise<RemoteModel> {
    const requestId = await session.submit({
      path: "create_model",
      json: {
        session_id: session.id,
        model_seq_id: seqId,
        base_model: form.baseModel,
        lora_config: {
          rank: form.rank,
          seed: form.seed,
          train_attn: form.trainAttn,
          train_mlp: form.trainMlp,
          train_unembed: form.trainUnembed,
        },
        optimizer_config: { type: "adamw" },
        type: "create_model",
      },
    });
    const { json } = await session.retrieve(requestId, "CreateModel");
    return new RemoteModel(session, readAnswer("create_model", createModelResponse, json).model_id);
  }

  /**
   * Creates a model from saved weights, with their optimizer or a new one. Where the service loads
   * weights only into a model that exists (SkyRL), creates it first. @throws SERVICE_FAILED
   */
  static async load(
    session: ServiceSession,
    seqId: number,
    {
      path,
      form,
      optimizer = true,
    }: { readonly path: string; readonly form: ServiceAdapter; readonly optimizer?: boolean },
  ): Promise<RemoteModel> {
    const weights = { path, optimizer, type: "load_weights" };
    const place = { session_id: session.id, model_seq_id: seqId, base_model: form.baseModel };
    try {
      const json = { ...place, ...weights, optimizer_config: { type: "adamw" } };
      const requestId = await session.submit({ path: "load_weights", json });
      const { json: answer } = await session.retrieve(requestId, "LoadWeights");
      const { model_id: id } = readAnswer("load_weights", loadWeightsResponse, answer);
      return new RemoteModel(session, id ?? `${session.id}:train:${seqId}`);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 422) throw error;
    }
    const model = await RemoteModel.create(session, seqId, form);
    const requestId = await model.submit((number) => ({
      path: "load_weights",
      json: { model_id: model.id, seq_id: number, ...weights },
    }));
    await session.retrieve(requestId, "LoadWeights");
    return model;
  }

  async getInfo(): Promise<z.infer<typeof getInfoResponse>> {
    return this.session.call({ path: "get_info", json: { model_id: this.id, type: "get_info" } }, getInfoResponse);
  }

  /**
   * Runs a training pass, or a forward pass alone. Returns the outputs of all data, and the metrics
   * of the first request.
   */
  async pass(
    data: readonly TrainingDatum[],
    { lossFn, forwardOnly = false, config = {} }: PassOptions,
  ): Promise<Pick<ForwardBackwardOutput, "lossFnOutputs" | "metrics">> {
    const chunks = this.split(data);
    const requests = chunks.map((chunk) =>
      this.submit((seqId) => ({
        path: "forward_backward",
        protobuf: encodeForwardBackward({
          modelId: this.id,
          seqId,
          data: chunk,
          lossFn,
          lossFnConfig: config,
          forwardOnly,
        }),
      })),
    );
    const kind = forwardOnly ? "Forward" : "ForwardBackward";
    const outputs = await Promise.all(
      requests.map(async (request) => {
        const { bytes } = await this.session.retrieve(await request, kind);
        if (bytes !== undefined) return decodeForwardBackwardOutput(bytes);
        throw new ServiceError(
          "The result of forward_backward is not protobuf, which SDK 0.25 and later need.",
          undefined,
        );
      }),
    );
    return {
      lossFnOutputs: outputs.flatMap(({ lossFnOutputs }) => lossFnOutputs),
      metrics: outputs.at(0)?.metrics ?? {},
    };
  }

  /**
   * Updates the adapter by the accumulated gradient, and returns the metrics that the service
   * reports.
   */
  async optimStep(step: AdamStep): Promise<Readonly<Record<string, number>>> {
    const requestId = await this.submit((seqId) => ({
      path: "optim_step",
      json: {
        model_id: this.id,
        seq_id: seqId,
        adam_params: {
          learning_rate: step.learningRate,
          beta1: step.beta1,
          beta2: step.beta2,
          eps: step.epsilon,
          weight_decay: step.weightDecay,
          grad_clip_norm: step.maxGradNorm,
        },
        type: "optim_step",
      },
    }));
    const { json } = await this.session.retrieve(requestId, "OptimStep");
    return readAnswer("optim_step", optimStepResponse, json).metrics ?? {};
  }

  /** Saves adapter and optimizer under a name, and returns the path. */
  async save(name: string): Promise<string> {
    const requestId = await this.submit((seqId) => ({
      path: "save_weights",
      json: { model_id: this.id, seq_id: seqId, path: name, overwrite: true, type: "save_weights" },
    }));
    const { json } = await this.session.retrieve(requestId, "SaveWeights");
    return requirePath("save_weights", readAnswer("save_weights", savedWeights, json).path);
  }

  /** Saves the adapter as files for other programs under a name, and returns the path. */
  async saveExternal(name: string): Promise<string> {
    const requestId = await this.submit((seqId) => ({
      path: "save_weights_external",
      json: { model_id: this.id, seq_id: seqId, path: name, type: "save_weights_external" },
    }));
    const { json } = await this.session.retrieve(requestId, "SaveWeightsExternal");
    return requirePath("save_weights_external", readAnswer("save_weights_external", savedWeights, json).path);
  }

  /** Saves the adapter for sampling under a name, and returns the path. */
  async saveForSampler(name: string): Promise<string> {
    const requestId = await this.submit((seqId) => ({
      path: "save_weights_for_sampler",
      json: { model_id: this.id, seq_id: seqId, path: name, type: "save_weights_for_sampler" },
    }));
    const { json } = await this.session.retrieve(requestId, "SaveWeightsForSampler");
    const path = readAnswer("save_weights_for_sampler", savedWeights, json).path;
    return requirePath("save_weights_for_sampler", path);
  }

  /** Takes a snapshot of the adapter and returns the id of a sampling session on it. */
  async snapshot(samplingSessionSeqId: number): Promise<string> {
    const requestId = await this.submit((seqId) => ({
      path: "save_weights_for_sampler",
      json: {
        model_id: this.id,
        seq_id: seqId,
        sampling_session_seq_id: samplingSessionSeqId,
        kind: "snapshot",
        type: "save_weights_for_sampler",
      },
    }));
    const { json } = await this.session.retrieve(requestId, "SaveWeightsForSampler");
    const answer = readAnswer("save_weights_for_sampler", savedWeights, json);
    return requirePath("save_weights_for_sampler", answer.sampling_session_id);
  }

  /** Frees the model at the service; one without the route keeps it until the session ends. */
  async unload(): Promise<void> {
    await this.session.connection
      .send({
        path: "unload_model",
        json: { model_id: this.id, type: "unload_model" },
        expectedStatuses: [400, 404, 405],
      })
      .catch(() => {});
  }

  /**
   * Submits a request after all earlier ones, with the next number; one that the service refuses
   * has taken no number.
   */
  private async submit(build: (seqId: number) => ServiceRequest): Promise<string> {
    const request = this.submitted.then(async () => {
      const requestId = await this.session.submit(build(this.lastSeqId + 1));
      this.lastSeqId++;
      return requestId;
    });
    // Its error is reported where it is awaited.
    this.submitted = request.catch(() => {});
    return request;
  }

  /** Splits data into requests of the size that the service takes. */
  private split(data: readonly TrainingDatum[]): TrainingDatum[][] {
    const { fwdbwd_max_chunk_len: maxLength, fwdbwd_max_chunk_bytes_count: maxBytes } = this.session.config;
    const chunks: TrainingDatum[][] = [];
    let bytes = Infinity;
    for (const datum of data) {
      const size = Object.values(datum.lossFnInputs).reduce(
        (sum, { data: { length } }) => sum + BYTES_PER_VALUE * length,
        BYTES_PER_TOKEN * datum.tokens.length,
      );
      const last = chunks.at(-1);
      if (last === undefined || last.length >= maxLength || bytes + size > maxBytes) {
        chunks.push([datum]);
        bytes = size;
      } else {
        last.push(datum);
        bytes += size;
      }
    }
    return chunks;
  }
}

function requirePath(route: string, path: string | null | undefined): string {
  if (typeof path === "string") return path;
  throw new ServiceError(`The result of ${route} has no path.`, undefined);
}
