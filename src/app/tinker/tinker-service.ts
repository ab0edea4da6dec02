import type * as z from "zod";
import { fs } from "#platform";
import { getOrCreatePromise } from "../../core/promise-cache.js";
import type { LanguageModel } from "../../generation/index.js";
import { getPeftModel } from "../../models/adapters/index.js";
import { loadTrainedValues } from "../../models/index.js";
import {
  type ForwardBackwardRequest,
  encodeForwardBackwardOutput,
  type requests,
  encodeSampleResponse,
} from "../../tinker/wire/index.js";
import { SERVICE_LORA_ALPHA } from "../../tinker/index.js";
import { RequestError } from "../server/request-error.js";
import {
  checkName,
  parsePath,
  type AdapterForm,
  type CheckpointKind,
  type CheckpointStore,
} from "./checkpoint-store.js";
import { Futures, type FutureResult } from "./futures.js";
import { selectTargets } from "./lora-targets.js";
import { ModelForm } from "./model-form.js";
import { OrderedRequests } from "./ordered-requests.js";
import { PromptScores } from "./prompt-scores.js";
import { checkSample, runSample, type SampleRequestBody } from "./sample.js";
import { Sessions, type TrainedModelEntry, type SamplingSession, type TinkerSession } from "./sessions.js";
import { SnapshotCache, type LoadedPolicy, type PolicySnapshot } from "./snapshots.js";
import { TrainedModel } from "./trained-model.js";

/** Models that are trained at a time. */
const MAX_MODELS = 64;
/** Snapshots without a name that a session keeps; the one used longest ago makes room. */
const MAX_SNAPSHOTS = 64;
/** Rank of a request without one, and the largest one. */
const DEFAULT_RANK = 32;
const MAX_RANK = 1024;

/** Copies of a sampling client number their requests in blocks. */
const CLONE_SEQ_IDS = 1_000_000_000;

/**
 * Returns the name under which the samples of a sampling client, or of a copy of it, are listed
 * when they end.
 */
export const getSampleLog = (samplingSession: string, clone: number): string => `${samplingSession}#${clone}`;

/** Options of a `TinkerService`. */
export interface TinkerServiceOptions {
  /** Name of the model in requests. */
  readonly modelName: string;
  /** Further names of the model, such as the path of its folder. */
  readonly aliases?: readonly string[];
  /** Folder of checkpoints. */
  readonly store: CheckpointStore;
  /** Folder of snapshots that make room in memory. */
  readonly snapshotFolder: string;
  /** Milliseconds without a sign of life after which a session ends. Default 5 minutes. */
  readonly sessionTimeoutMs?: number;
  /** Logs an error that the client did not cause. */
  readonly onError?: (error: unknown) => void;
  /** Counts a request of a model that is run. */
  readonly onWork?: (kind: string) => void;
}

/** Trains adapters of one model and samples from them, as the Tinker API describes. */
export class TinkerService {
  readonly futures: Futures;
  readonly sessions: Sessions;
  readonly snapshots: SnapshotCache;
  private readonly forms = new Map<string, Promise<ModelForm>>();
  /** Snapshots of checkpoints, by path. */
  private readonly checkpoints = new Map<string, Promise<PolicySnapshot>>();
  private readonly scores = new PromptScores();
  private readonly base: ModelForm;

  constructor(
    readonly model: LanguageModel,
    readonly options: TinkerServiceOptions,
  ) {
    this.futures = new Futures({ onError: options.onError });
    this.base = new ModelForm(model.causalLM);
    this.snapshots = new SnapshotCache(options.snapshotFolder);
    this.sessions = new Sessions(options.sessionTimeoutMs, (session) => this.endSession(session));
  }

  get modelName(): string {
    return this.options.modelName;
  }

  get store(): CheckpointStore {
    return this.options.store;
  }

  /** Checks the name of a base model. @throws RequestError 400 for another one. */
  checkBaseModel(name: string | null | undefined): void {
    const { modelName, aliases = [] } = this.options;
    if (name == null || name === modelName || aliases.includes(name)) return;
    throw new RequestError(400, `There is no model ${JSON.stringify(name.slice(0, 200))} here. Use ${modelName}.`);
  }

  /** Starts to create an adapter. Returns the id of the request, and of the model. */
  createModel(body: z.infer<typeof requests.createModelRequest>): { request_id: string; model_id: string } {
    this.checkBaseModel(body.base_model);
    checkOptimizer(body.optimizer_config?.type);
    const lora = body.lora_config;
    if ((lora?.rank ?? DEFAULT_RANK) > MAX_RANK)
      throw new RequestError(400, `The rank of an adapter must be at most ${MAX_RANK}, got ${lora!.rank}.`);
    const { rank = DEFAULT_RANK, train_attn = true, train_mlp = true, train_unembed = true } = lora ?? {};
    const form = { rank, train_attn, train_mlp, train_unembed };
    selectTargets(this.model.causalLM.config, form);
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
      await this.forgetCheckpoint(path);
      return { json: { path, type: "save_weights" } };
    });
  }

  /** Returns what a checkpoint of a model contains, apart from the optimizer. */
  private describeModel(
    { form, userMetadata }: TrainedModelEntry,
    { model }: TrainedModel,
    body: Pick<z.infer<typeof requests.saveWeightsRequest>, "user_metadata" | "ttl_seconds">,
  ) {
    return {
      model,
      baseModel: this.modelName,
      form,
      userMetadata: body.user_metadata ?? userMetadata,
      ttlSeconds: body.ttl_seconds,
    };
  }

  /** Starts to take a snapshot: with a name as a checkpoint, without one in memory. */
  saveForSampler(body: z.infer<typeof requests.saveWeightsForSamplerRequest>): object {
    const { path: name, sampling_session_seq_id: samplerSeq } = body;
    if (name == null && samplerSeq == null)
      throw new RequestError(400, "save_weights_for_sampler needs `path` or `sampling_session_seq_id`.");
    if (name != null) checkName(name);
    return this.submit("save_weights_for_sampler", body.model_id, body.seq_id, async (entry) => {
      const trained = await entry.trained;
      const type = "save_weights_for_sampler";
      if (name != null) {
        const saved = { ...this.describeModel(entry, trained, body), optimizer: undefined };
        const path = await this.store.save({ runId: entry.id, kind: "sampler_weights", name }, saved);
        return { json: { path, type } };
      }
      const snapshot = await this.snapshots.take(await this.form(entry.form), trained.model);
      const inflightOf = body.kind === "inflight" ? entry.id : undefined;
      if (inflightOf !== undefined) await this.replaceInflight(entry, snapshot);
      const sampling = this.addSampling(entry.session, samplerSeq!, { snapshot, path: undefined, inflightOf });
      this.limitSnapshots(entry.session);
      return { json: { path: null, sampling_session_id: sampling.id, type } };
    });
  }

  /** Starts to load a checkpoint, into a new model or one that exists. */
  async loadWeights(body: z.infer<typeof requests.loadWeightsRequest>): Promise<object> {
    this.checkBaseModel(body.base_model);
    checkOptimizer(body.optimizer_config?.type);
    const checkpoint = await this.store.get(parsePath(body.path));
    this.checkBaseModel(checkpoint.baseModel);
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

  /**
   * Creates a sampling session of the base model or of a checkpoint. @throws RequestError 404 for
   * an unknown checkpoint.
   */
  async createSampling(
    session: TinkerSession,
    seq: number,
    modelPath: string | null | undefined,
  ): Promise<SamplingSession> {
    const existing = session.sampling.get(`${session.id}:sample:${seq}`);
    if (existing !== undefined) return existing;
    const snapshot = modelPath == null ? undefined : await this.openCheckpoint(modelPath);
    return this.addSampling(session, seq, { snapshot, path: modelPath ?? undefined, inflightOf: undefined });
  }

  /** Starts a sample. */
  async sample(body: SampleRequestBody): Promise<object> {
    const sampling = body.sampling_session_id == null ? undefined : this.sessions.getSampling(body.sampling_session_id);
    if (sampling === undefined) this.checkBaseModel(body.base_model);
    const snapshot =
      sampling === undefined
        ? body.model_path == null
          ? undefined
          : await this.openCheckpoint(body.model_path)
        : sampling.snapshot;
    const requestId =
      sampling === undefined || body.seq_id == null ? `sample:${crypto.randomUUID()}` : `${sampling.id}:${body.seq_id}`;
    const answer = {
      request_id: requestId,
      sample_sequence_ids: Array.from({ length: body.num_samples }, (_, i) => `${requestId}:${i}`),
    };
    if (this.futures.has(requestId)) return answer;
    const request = checkSample(body, this.model);
    this.futures.start(
      requestId,
      sampling?.session.id ?? "",
      (signal) =>
        this.usePolicy(snapshot, async (policy) => {
          const context = { policy, model: this.model, scores: this.scores, signal };
          return { protobuf: encodeSampleResponse(await runSample(request, context)) };
        }),
      { samplingSession: sampling && getSampleLog(sampling.id, Math.floor((body.seq_id ?? 0) / CLONE_SEQ_IDS)) },
    );
    return answer;
  }

  /** Ends all sessions and frees what they hold. */
  async close(): Promise<void> {
    await this.sessions.close();
    await this.snapshots.clear();
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
          this.options.onWork?.(kind);
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
      const shared = await this.form(form);
      const model = new TrainedModel(await this.createAdapter(form, seed), shared);
      await load?.(model);
      const created = new Date().toISOString();
      await this.store.addRun({ runId: id, baseModel: this.modelName, form, userMetadata, created });
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

  private async createAdapter(form: AdapterForm, seed: number) {
    const { causalLM } = this.model;
    return getPeftModel(causalLM, {
      r: form.rank,
      loraAlpha: SERVICE_LORA_ALPHA,
      targetModules: selectTargets(causalLM.config, form),
      seed: Math.abs(seed),
    });
  }

  /** Returns what adapters of a form share. */
  private form(form: AdapterForm): Promise<ModelForm> {
    return getOrCreatePromise(
      this.forms,
      JSON.stringify([form.rank, form.train_attn, form.train_mlp, form.train_unembed]),
      async () => new ModelForm(await this.createAdapter(form, 0)),
    );
  }

  private openCheckpoint(path: string): Promise<PolicySnapshot> {
    return getOrCreatePromise(this.checkpoints, path, async () => {
      const checkpoint = await this.store.get(parsePath(path));
      this.checkBaseModel(checkpoint.baseModel);
      await this.store.verify(checkpoint);
      return this.snapshots.open(await this.form(checkpoint.form), checkpoint.folder);
    });
  }

  /** Forgets the values of a checkpoint that was deleted or replaced. */
  async forgetCheckpoint(path: string): Promise<void> {
    const snapshot = this.checkpoints.get(path);
    this.checkpoints.delete(path);
    const found = await snapshot?.catch(() => undefined);
    if (found !== undefined) await this.snapshots.remove(found);
  }

  private addSampling(
    session: TinkerSession,
    seq: number,
    source: Pick<SamplingSession, "snapshot" | "path" | "inflightOf">,
  ): SamplingSession {
    const id = `${session.id}:sample:${seq}`;
    const entry: SamplingSession = { id, session, ...source, clients: 0 };
    session.sampling.set(id, entry);
    return entry;
  }

  /** Lets the sampling sessions that follow a model sample from its new snapshot. */
  private async replaceInflight({ id, session }: TrainedModelEntry, snapshot: PolicySnapshot): Promise<void> {
    const following = [...session.sampling.values()].filter(({ inflightOf }) => inflightOf === id);
    const replaced = new Set(following.map((sampling) => sampling.snapshot!));
    for (const sampling of following) sampling.snapshot = snapshot;
    for (const each of replaced) await this.snapshots.remove(each);
  }

  /** Drops the snapshots of a session that were used longest ago. */
  private limitSnapshots(session: TinkerSession): void {
    const own = [...session.sampling.values()].filter(({ snapshot }) => snapshot?.isTemporary === true);
    if (own.length <= MAX_SNAPSHOTS) return;
    const oldest = own.reduce((a, b) => (a.snapshot!.lastUsed <= b.snapshot!.lastUsed ? a : b));
    session.sampling.delete(oldest.id);
    void this.snapshots.remove(oldest.snapshot!);
  }

  private async usePolicy<Result>(
    snapshot: PolicySnapshot | undefined,
    work: (policy: LoadedPolicy) => Promise<Result>,
  ): Promise<Result> {
    if (snapshot !== undefined) return this.snapshots.use(snapshot, work);
    return work({ form: this.base, model: this.model.causalLM, sampler: await this.model.sampler() });
  }

  private async endSession(session: TinkerSession): Promise<void> {
    this.futures.endSession(session.id);
    for (const entry of session.models.values()) {
      await freeModel(entry);
      await this.store.removeEmptyRun(entry.id);
    }
    for (const { snapshot } of session.sampling.values())
      if (snapshot?.isTemporary === true) await this.snapshots.remove(snapshot);
    session.models.clear();
    session.sampling.clear();
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

/** Returns the folder of snapshots in that of checkpoints. */
export const getSnapshotFolder = (folder: string): string => fs.join(folder, ".snapshots");
