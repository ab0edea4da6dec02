import type * as z from "zod";
import { loadTrainedValues } from "../../models/index.js";
import { type ForwardBackwardRequest, encodeForwardBackwardOutput, type requests } from "../../tinker/wire/index.js";
import { RequestError } from "../server/request-error.js";
import type { BaseModel } from "./base-model.js";
import {
  checkName,
  parsePath,
  type AdapterForm,
  type CheckpointKind,
  type CheckpointStore,
} from "./checkpoint-store.js";
import type { Futures, FutureResult } from "./futures.js";
import { selectTargets } from "./lora-targets.js";
import { OrderedRequests } from "./ordered-requests.js";
import type { SamplingService } from "./sampling-service.js";
import type { Sessions, TinkerSession, TrainedModelEntry } from "./sessions.js";
import { TrainedModel } from "./trained-model.js";

/** Models that are trained at a time. */
const MAX_MODELS = 64;
/** Rank of a request without one, and the largest one. */
const DEFAULT_RANK = 32;
const MAX_RANK = 1024;

/** Creates, trains, saves and loads the adapters of clients. */
export class TrainingService {
  constructor(
    private readonly base: BaseModel,
    private readonly store: CheckpointStore,
    private readonly sessions: Sessions,
    private readonly futures: Futures,
    private readonly sampling: SamplingService,
    /** Counts a request of a model that is run. */
    private readonly onWork?: (kind: string) => void,
  ) {}

  /** Starts to create an adapter. Returns the id of the request, and of the model. */
  createModel(body: z.infer<typeof requests.createModelRequest>): { request_id: string; model_id: string } {
    this.base.checkName(body.base_model);
    checkOptimizer(body.optimizer_config?.type);
    const lora = body.lora_config;
    if ((lora?.rank ?? DEFAULT_RANK) > MAX_RANK)
      throw new RequestError(400, `The rank of an adapter must be at most ${MAX_RANK}, got ${lora!.rank}.`);
    const { rank = DEFAULT_RANK, train_attn = true, train_mlp = true, train_unembed = true } = lora ?? {};
    const form = { rank, train_attn, train_mlp, train_unembed };
    selectTargets(this.base.model.causalLM.config, form);
    const session = this.sessions.get(body.session_id);
    const id = `${session.id}:train:${body.model_seq_id}`;
    const requestId = `${id}:create`;
    if (session.models.has(id)) return { request_id: requestId, model_id: id };
    const entry = this.addModel(session, id, form, lora?.seed ?? 0, body.user_metadata);
    this.futures.start(requestId, session.id, async () => {
      await entry.trained;
      return { json: { model_id: id, type: "create_model" } };
    });
    return { request_id: requestId, model_id: id };
  }

  /** Starts a training pass. */
  forwardBackward(request: ForwardBackwardRequest): object {
    const kind = request.forwardOnly ? "forward" : "forward_backward";
    return this.submit(kind, request.modelId, request.seqId === 0 ? undefined : request.seqId, async (entry) => {
      const output = await (await entry.trained).run(request);
      return { protobuf: encodeForwardBackwardOutput(output) };
    });
  }

  /** Starts an optimizer step. */
  optimStep({ model_id: modelId, seq_id: seqId, ...body }: z.infer<typeof requests.optimStepRequest>): object {
    checkOptimizer(body.optimizer_params == null ? undefined : body.optimizer_params.type);
    const params = body.adam_params;
    if (params == null) throw new RequestError(400, "optim_step needs `adam_params`.");
    return this.submit("optim_step", modelId, seqId, async (entry) => {
      const { gradNorm } = await (
        await entry.trained
      ).step({
        learningRate: params.learning_rate,
        beta1: params.beta1,
        beta2: params.beta2,
        epsilon: params.eps,
        weightDecay: params.weight_decay,
        maxGradNorm: params.grad_clip_norm === 0 ? Infinity : params.grad_clip_norm,
      });
      return { json: { metrics: { "grad_norm:mean": gradNorm } } };
    });
  }

  /** Starts to save a checkpoint for training, or the adapter alone for other programs. */
  saveWeights(
    body: z.infer<typeof requests.saveWeightsRequest>,
    kind: Exclude<CheckpointKind, "sampler_weights">,
  ): object {
    const name = checkName(body.path ?? `step-${crypto.randomUUID().slice(0, 8)}`);
    return this.submit("save_weights", body.model_id, body.seq_id, async (entry) => {
      const trained = await entry.trained;
      const optimizer = kind === "weights" ? await trained.getOptimizerState() : undefined;
      const path = await this.store.save(
        { runId: entry.id, kind, name },
        { ...this.describeModel(entry, trained, body), optimizer },
        { overwrite: body.overwrite },
      );
      await this.sampling.forgetCheckpoint(path);
      return { json: { path, type: "save_weights" } };
    });
  }

  /** Starts to take a snapshot: with a name as a checkpoint, without one in memory. */
  saveForSampler(body: z.infer<typeof requests.saveWeightsForSamplerRequest>): object {
    const { path: name, sampling_session_seq_id: samplerSeq } = body;
    if (name == null && samplerSeq == null)
      throw new RequestError(400, "save_weights_for_sampler needs `path` or `sampling_session_seq_id`.");
    if (name != null) checkName(name);
    return this.submit("save_weights_for_sampler", body.model_id, body.seq_id, async (entry) => {
      const type = "save_weights_for_sampler";
      if (name != null) {
        const saved = { ...this.describeModel(entry, await entry.trained, body), optimizer: undefined };
        const path = await this.store.save({ runId: entry.id, kind: "sampler_weights", name }, saved);
        return { json: { path, type } };
      }
      const sampling = await this.sampling.createFromModel(entry, body);
      return { json: { path: null, sampling_session_id: sampling.id, type } };
    });
  }

  /** Starts to load a checkpoint, into a new model or one that exists. */
  async loadWeights(body: z.infer<typeof requests.loadWeightsRequest>): Promise<object> {
    this.base.checkName(body.base_model);
    checkOptimizer(body.optimizer_config?.type);
    const checkpoint = await this.store.get(parsePath(body.path));
    this.base.checkName(checkpoint.baseModel);
    const load = async (trained: TrainedModel): Promise<FutureResult> => {
      const optimizer = body.optimizer ? await this.store.readOptimizer(checkpoint) : undefined;
      if (body.optimizer && optimizer === undefined)
        throw new RequestError(
          400,
          `${body.path} has no state of an optimizer. Load it without, or load a checkpoint of save_state.`,
        );
      await loadTrainedValues(trained.model, checkpoint.folder);
      await trained.restore(optimizer);
      return { json: { path: body.path, type: "load_weights" } };
    };
    if (body.model_id != null)
      return this.submit("load_weights", body.model_id, body.seq_id, async (entry) => load(await entry.trained));
    if (body.session_id == null || body.model_seq_id == null)
      throw new RequestError(400, "load_weights needs `session_id` and `model_seq_id`, or `model_id` and `seq_id`.");
    const session = this.sessions.get(body.session_id);
    const id = `${session.id}:train:${body.model_seq_id}`;
    const requestId = `${id}:create`;
    const answer = { request_id: requestId, model_id: id };
    if (session.models.has(id)) return answer;
    await this.store.verify(checkpoint);
    const entry = this.addModel(session, id, checkpoint.form, 0, body.user_metadata ?? checkpoint.userMetadata, load);
    this.futures.start(requestId, session.id, async () => {
      await entry.trained;
      return { json: { path: body.path, model_id: id, type: "load_weights" } };
    });
    return answer;
  }

  /** Frees a model. */
  unloadModel(modelId: string): object {
    const entry = this.sessions.getModel(modelId);
    const requestId = `${entry.id}:unload`;
    this.futures.start(requestId, entry.session.id, async () => {
      entry.session.models.delete(entry.id);
      await freeModel(entry);
      return { json: { model_id: modelId, type: "unload_model" } };
    });
    return { request_id: requestId, model_id: modelId };
  }

  /** Frees the models of a session. */
  async endSession({ models }: TinkerSession): Promise<void> {
    for (const entry of models.values()) {
      await freeModel(entry);
      await this.store.removeEmptyRun(entry.id);
    }
    models.clear();
  }

  /** Returns what a checkpoint of a model contains, apart from the optimizer. */
  private describeModel(
    { form, userMetadata }: TrainedModelEntry,
    { model }: TrainedModel,
    body: Pick<z.infer<typeof requests.saveWeightsRequest>, "user_metadata" | "ttl_seconds">,
  ) {
    return {
      model,
      baseModel: this.base.name,
      form,
      userMetadata: body.user_metadata ?? userMetadata,
      ttlSeconds: body.ttl_seconds,
    };
  }

  private submit(
    kind: string,
    modelId: string,
    seqId: number | null | undefined,
    work: (entry: TrainedModelEntry) => Promise<FutureResult>,
  ): { request_id: string; model_id: string } {
    const entry = this.sessions.getModel(modelId);
    const { requests, session } = entry;
    const seq = requests.number(seqId);
    const requestId = `${entry.id}:${seq}`;
    // A number that was submitted before is a repetition: the request runs once.
    if (!requests.has(seq)) {
      requests.check(seq);
      entry.lastRequest = new Date();
      this.futures.start(requestId, session.id, () =>
        requests.run(seq, () => {
          this.onWork?.(kind);
          return work(entry);
        }),
      );
    }
    return { request_id: requestId, model_id: entry.id };
  }

  private addModel(
    session: TinkerSession,
    id: string,
    form: AdapterForm,
    seed: number,
    userMetadata: Readonly<Record<string, unknown>> | null | undefined,
    load?: (trained: TrainedModel) => Promise<unknown>,
  ): TrainedModelEntry {
    if (this.sessions.modelCount >= MAX_MODELS)
      throw new RequestError(429, `The server trains ${MAX_MODELS} models already. Close a session first.`, {
        retryAfter: 5,
      });
    const trained = (async () => {
      const shared = await this.base.getForm(form);
      const model = new TrainedModel(await this.base.createAdapter(form, seed), shared);
      await load?.(model);
      const created = new Date().toISOString();
      await this.store.addRun({ runId: id, baseModel: this.base.name, form, userMetadata, created });
      return model;
    })();
    trained.catch(() => undefined);
    const entry: TrainedModelEntry = {
      id,
      session,
      form,
      userMetadata,
      trained,
      requests: new OrderedRequests(),
      lastRequest: new Date(),
    };
    session.models.set(id, entry);
    return entry;
  }
}

/** Frees the memory of a model once the request that runs is done. */
async function freeModel({ requests, trained, id }: TrainedModelEntry): Promise<void> {
  await requests.close(new RequestError(410, `The model ${id} was freed, because its session has ended.`));
  const model = await trained.catch(() => undefined);
  model?.release();
}

function checkOptimizer(type: string | undefined): void {
  if (type !== undefined && type !== "adamw")
    throw new RequestError(400, `The optimizer ${JSON.stringify(type.slice(0, 100))} is not supported. Use adamw.`);
}
