import type * as z from "zod";
import { getOrCreatePromise } from "../../core/promise-cache.js";
import { encodeSampleResponse, type requests } from "../../tinker/wire/index.js";
import type { BaseModel } from "./base-model.js";
import { parsePath, type CheckpointStore } from "./checkpoint-store.js";
import type { Futures } from "./futures.js";
import { PromptScores } from "./prompt-scores.js";
import { checkSample, runSample, type SampleRequestBody } from "./sample.js";
import type { Sessions, SamplingSession, TinkerSession, TrainedModelEntry } from "./sessions.js";
import type { LoadedPolicy, PolicySnapshot, SnapshotCache } from "./snapshots.js";

/** Snapshots without a name that a session keeps; the one used longest ago makes room. */
const MAX_SNAPSHOTS = 64;
/** Copies of a sampling client number their requests in blocks. */
const CLONE_SEQ_IDS = 1_000_000_000;

/**
 * Returns the name under which the samples of a sampling client, or of a copy of it, are listed
 * when they end.
 */
export const getSampleLog = (samplingSession: string, clone: number): string => `${samplingSession}#${clone}`;

/** Samples from the base model, from checkpoints and from snapshots of models that are trained. */
export class SamplingService {
  /** Snapshots of checkpoints, by path. */
  private readonly checkpoints = new Map<string, Promise<PolicySnapshot>>();
  private readonly scores = new PromptScores();

  constructor(
    private readonly base: BaseModel,
    private readonly store: CheckpointStore,
    private readonly sessions: Sessions,
    private readonly futures: Futures,
    private readonly snapshots: SnapshotCache,
  ) {}

  /**
   * Creates a sampling session of the base model or of a checkpoint. @throws RequestError 404 for
   * an unknown checkpoint.
   */
  async createSession(
    session: TinkerSession,
    seq: number,
    modelPath: string | null | undefined,
  ): Promise<SamplingSession> {
    const existing = session.sampling.get(`${session.id}:sample:${seq}`);
    if (existing !== undefined) return existing;
    const snapshot = modelPath == null ? undefined : await this.openCheckpoint(modelPath);
    return this.add(session, seq, { snapshot, path: modelPath ?? undefined, inflightOf: undefined });
  }

  /** Starts a sample. */
  async sample(body: SampleRequestBody): Promise<object> {
    const sampling = body.sampling_session_id == null ? undefined : this.sessions.getSampling(body.sampling_session_id);
    if (sampling === undefined) this.base.checkName(body.base_model);
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
    const request = checkSample(body, this.base.model);
    this.futures.start(
      requestId,
      sampling?.session.id ?? "",
      (signal) =>
        this.usePolicy(snapshot, async (policy) => {
          const context = { policy, model: this.base.model, scores: this.scores, signal };
          return { protobuf: encodeSampleResponse(await runSample(request, context)) };
        }),
      { samplingSession: sampling && getSampleLog(sampling.id, Math.floor((body.seq_id ?? 0) / CLONE_SEQ_IDS)) },
    );
    return answer;
  }

  /** Creates a sampling session of a model's present values. */
  async createFromModel(
    { id, session, form, trained }: TrainedModelEntry,
    { sampling_session_seq_id: seq, kind }: z.infer<typeof requests.saveWeightsForSamplerRequest>,
  ): Promise<SamplingSession> {
    const { model } = await trained;
    const snapshot = await this.snapshots.take(await this.base.getForm(form), model);
    const inflightOf = kind === "inflight" ? id : undefined;
    if (inflightOf !== undefined) await this.replaceInflight(session, inflightOf, snapshot);
    const sampling = this.add(session, seq!, { snapshot, path: undefined, inflightOf });
    this.limitSnapshots(session);
    return sampling;
  }

  /** Forgets the values of a checkpoint that was deleted or replaced. */
  async forgetCheckpoint(path: string): Promise<void> {
    const snapshot = this.checkpoints.get(path);
    this.checkpoints.delete(path);
    const found = await snapshot?.catch(() => undefined);
    if (found !== undefined) await this.snapshots.remove(found);
  }

  /** Frees the snapshots of a session. */
  async endSession({ sampling }: TinkerSession): Promise<void> {
    for (const { snapshot } of sampling.values())
      if (snapshot?.isTemporary === true) await this.snapshots.remove(snapshot);
    sampling.clear();
  }

  private openCheckpoint(path: string): Promise<PolicySnapshot> {
    return getOrCreatePromise(this.checkpoints, path, async () => {
      const checkpoint = await this.store.get(parsePath(path));
      this.base.checkName(checkpoint.baseModel);
      await this.store.verify(checkpoint);
      return this.snapshots.open(await this.base.getForm(checkpoint.form), checkpoint.folder);
    });
  }

  private add(
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
  private async replaceInflight(session: TinkerSession, modelId: string, snapshot: PolicySnapshot): Promise<void> {
    const following = [...session.sampling.values()].filter(({ inflightOf }) => inflightOf === modelId);
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
    const { form, model } = this.base;
    return work({ form, model: model.causalLM, sampler: await model.sampler() });
  }
}
