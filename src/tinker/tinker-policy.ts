import { fs } from "#platform";
import { getOrCreatePromise } from "../core/promise-cache.js";
import { invalidArgument, LlamaGymError } from "../core/errors.js";
import { Runtime } from "../engine/runtime/index.js";
import type {
  PolicyBackend,
  PolicyOptimizerOptions,
  PolicyScorer,
  PolicyTrainer,
  TokenSampler,
  TrainingNeeds,
} from "../generation/index.js";
import type { GraphOptions, LossResult, PolicyNodes, TokenBatch } from "../models/graphs/index.js";
import { SamplingClient } from "./client/sampling-client.js";
import type { ServiceSession } from "./client/service-session.js";
import { TokenUsage } from "./client/token-usage.js";
import type { ServiceAdapter } from "./client/remote-model.js";
import type { LocalCritic } from "./local-critic.js";
import { RemoteOptimizer } from "./remote-optimizer.js";
import { RemoteSampler } from "./remote-sampler.js";
import { RemoteTrainer } from "./remote-trainer.js";
import type { ServiceTraits } from "./probe-service.js";
import { readServiceModel, writeServiceModel, type ServiceModel } from "./service-model.js";
import { unpackSequences, type TargetSequence } from "./token-sequences.js";
import { TrainedServiceModel } from "./trained-service-model.js";

/** A policy on a service. */
export interface TinkerPolicyOptions {
  readonly session: ServiceSession;
  readonly form: ServiceAdapter;
  readonly vocabSize: number;
  readonly maxPositions: number;
  /** Saved weights to sample from and to continue training. */
  readonly saved?: ServiceModel | undefined;
  readonly maxServiceTokens?: number | undefined;
  /** Estimates values in this process. */
  readonly critic?: LocalCritic | undefined;
  /** Measures how the service computes. */
  readonly probe: () => Promise<ServiceTraits>;
}

/** Folder of the critic in that of the policy. */
const CRITIC_FOLDER = "critic";
/** Name of the parameters at the service, for what selects parameters by name. */
const ADAPTER_PARAMETER = "adapter";

/** Larger than any minibatch: a service splits requests itself. */
const MICRO_BATCH_TOKENS = 2 ** 30;

/**
 * A policy that a Tinker service samples and trains. Nothing is created there before the first
 * sample or pass. The service trains its own losses and linear ones, into which RemoteTrainer turns
 * every loss over log-probabilities.
 */
export class TinkerPolicy implements PolicyBackend {
  readonly causalLM = undefined;
  readonly frozenStates = undefined;
  readonly generationConfig = {};
  readonly eosTokenIds: readonly number[] = [];
  readonly isTrainable = true;
  readonly hasAdapter = true;
  readonly hasDistributions = false;
  readonly maxAlternatives = Infinity;
  readonly microBatchTokens = MICRO_BATCH_TOKENS;
  readonly config;
  readonly usage: TokenUsage;
  private version = 0;
  private clearedCaches = 0;
  private readonly trained: TrainedServiceModel;
  private samplerCount = 0;
  private snapshot: { readonly version: number; readonly client: Promise<SamplingClient> } | undefined;
  private reference: Promise<SamplingClient> | undefined;
  private readonly samplers = new Map<boolean, Promise<TokenSampler>>();
  private openedRuntime: Runtime | undefined;

  constructor(private readonly options: TinkerPolicyOptions) {
    const { vocabSize, maxPositions, saved, maxServiceTokens } = options;
    // What attention costs at the service is not known here, so that micro-batches are not split
    // for it.
    this.config = { vocabSize, maxPositions, hiddenSize: Infinity, heads: 1 };
    this.usage = new TokenUsage(maxServiceTokens);
    const { session, form, probe } = options;
    this.trained = new TrainedServiceModel({ session, form, saved, probe, usage: this.usage });
  }

  get name(): string {
    return this.options.form.baseModel;
  }

  /** Losses of the service that the policy was trained with: see `ServiceModel`. */
  get usedLosses(): readonly string[] {
    return this.trained.usedLosses;
  }

  private get critic(): LocalCritic | undefined {
    return this.options.critic;
  }

  get valueHead() {
    return this.critic?.valueHead;
  }

  get runtime(): Runtime {
    return (this.openedRuntime ??= new Runtime({ device: "cpu", threads: 1 }));
  }

  get parametersVersion(): number {
    return this.version;
  }

  get cacheVersion(): number {
    return this.version + this.clearedCaches;
  }

  markParametersChanged(): void {
    this.version++;
    this.critic?.markParametersChanged();
  }

  clearCaches(): void {
    this.clearedCaches++;
  }

  get isExhausted(): boolean {
    return this.usage.isExhausted;
  }

  get metrics(): Readonly<Record<string, number>> {
    return this.usage.metrics;
  }

  async sampler({ adapter = true }: { readonly adapter?: boolean } = {}): Promise<TokenSampler> {
    return getOrCreatePromise(
      this.samplers,
      adapter,
      async () => new RemoteSampler(async () => (adapter ? this.policyClient() : this.referenceClient())),
    );
  }

  async createScorer(): Promise<PolicyScorer> {
    const run: PolicyScorer["run"] = async (batch, options) => {
      checkBatch(batch);
      const isReference = options?.adapter === false;
      const sequences = unpackSequences(batch, isReference ? "one" : (await this.trained.getTraits()).severalTargets);
      const count = batch.selected.length;
      const [logProbs, values] = await Promise.all([
        isReference
          ? this.scoreReference(sequences, count)
          : options?.valuesOnly === true
            ? new Float32Array(count).fill(NaN)
            : this.trained.score(sequences, count),
        isReference ? undefined : this.critic?.score(batch),
      ]);
      return { logProbs, maxLogProbs: undefined, entropy: undefined, values, outputs: {} };
    };
    return { run, release: async () => {} };
  }

  async createTrainer(lossFn: (policy: PolicyNodes) => LossResult, options?: GraphOptions): Promise<PolicyTrainer> {
    const trainer = await RemoteTrainer.create(this.trained, {
      ...options,
      runtime: this.runtime,
      critic: this.critic,
      lossFn,
    });
    return {
      run: async (batch, inputs, runOptions) => {
        checkBatch(batch);
        return trainer.run(batch, inputs, runOptions);
      },
      release: async () => trainer.release(),
    };
  }

  createOptimizer(options: PolicyOptimizerOptions): RemoteOptimizer {
    return new RemoteOptimizer(options, this.trained, this.critic?.createOptimizer(options));
  }

  /** The critic's parameters are always trained; those at the service all or none. */
  async zeroGradients(isUntrained: (parameter: string) => boolean): Promise<void> {
    if (isUntrained(ADAPTER_PARAMETER)) this.trained.gradient.drop();
  }

  checkTraining({ title, critic, scoresEntropy, filtersParameters, ...sampling }: TrainingNeeds): void {
    const problem =
      critic && this.critic === undefined
        ? "it trains a value head, which a service does not have. Open the model with a `critic`, or use grpo, rloo or reinforce"
        : scoresEntropy
          ? "it needs the entropy of each token, which a service does not return. Leave out what selects tokens by entropy " +
            "(topEntropyQuantile 1)"
          : filtersParameters && !critic
            ? "it trains some parameters only, and a service trains all of an adapter"
            : sampling.temperature !== 1
              ? `a service trains at temperature 1, and completions are sampled at ${sampling.temperature}. Set temperature to 1`
              : sampling.isTruncatedSampling
                ? "a service does not say which tokens topK, topP and minP kept. Set them to 0, 1 and 0"
                : undefined;
    if (problem !== undefined)
      throw invalidArgument(`${title} cannot train ${this.name} on a Tinker service: ${problem}.`);
  }

  /** Saves adapter and optimizer on the service, and their paths in a folder. */
  async save(folder: string): Promise<void> {
    const saved = await this.trained.save();
    await fs.makeFolder(folder);
    await this.critic?.save(fs.join(folder, CRITIC_FOLDER));
    await writeServiceModel(folder, saved);
  }

  /**
   * Continues with the adapter and optimizer that `save` saved. @throws FILE_NOT_FOUND,
   * FILE_CORRUPT, WEIGHTS_MISMATCH
   */
  async loadTrainedValues(folder: string): Promise<void> {
    const saved = await readServiceModel(folder);
    const { form } = this.options;
    if (JSON.stringify(saved.form) !== JSON.stringify(form))
      throw new LlamaGymError(
        "WEIGHTS_MISMATCH",
        `${folder} has an adapter of ${saved.form.baseModel} with rank ${saved.form.rank}, and the run trains one of ` +
          `${form.baseModel} with rank ${form.rank}. Resume it with the settings that it was started with.`,
      );
    await this.loadCritic(folder);
    await this.trained.load(saved);
    this.snapshot = undefined;
    if (this.usage.total === 0) this.usage.restore(saved.tokens);
    this.markParametersChanged();
  }

  /** Continues with the critic that was saved with a policy, if both have one. */
  async loadCritic(folder: string): Promise<void> {
    const path = fs.join(folder, CRITIC_FOLDER);
    if (this.critic !== undefined && (await fs.exists(path))) await this.critic.load(path);
  }

  async close(): Promise<void> {
    await this.critic?.close();
    await this.options.session.close();
    await this.openedRuntime?.close();
  }

  /** Returns the client of the policy's present weights; saved weights need no trained model. */
  private async policyClient(): Promise<SamplingClient> {
    const { version, options } = this;
    if (this.snapshot?.version !== version) this.snapshot = { version, client: this.openPolicyClient(options.session) };
    return this.snapshot.client;
  }

  private async openPolicyClient(session: ServiceSession): Promise<SamplingClient> {
    this.usage.check();
    const { samplerPath: modelPath } = this.trained;
    const snapshot = async () => this.trained.snapshot(this.samplerCount++);
    if (modelPath === undefined) return new SamplingClient(session, await snapshot(), this.usage);
    // SkyRL samples saved weights only while their model is loaded, not after it was started again.
    return SamplingClient.open(session, this.samplerCount++, { modelPath }, this.usage, snapshot);
  }

  private async referenceClient(): Promise<SamplingClient> {
    const { session, form } = this.options;
    this.reference ??= SamplingClient.open(session, this.samplerCount++, { baseModel: form.baseModel }, this.usage);
    return this.reference;
  }

  /** Scores under the base model, by prompts that end with a target. */
  private async scoreReference(sequences: readonly TargetSequence[], count: number): Promise<Float32Array> {
    const client = await this.referenceClient();
    const logProbs = new Float32Array(count);
    await Promise.all(
      sequences.map(async ({ tokens, targets }) => {
        const first = Math.min(...targets.map(({ position }) => position));
        const values = await client.scoreLast(tokens, tokens.length - first);
        for (const { position, index } of targets) logProbs[index] = values[position - first];
      }),
    );
    return logProbs;
  }
}

/** @throws INVALID_ARGUMENT for a batch that a service does not score. */
function checkBatch({ selected, temperature = 1 }: TokenBatch): void {
  if (temperature !== 1)
    throw invalidArgument(`A Tinker service trains at temperature 1, got ${temperature}. Set temperature to 1.`);
  if (selected.some(({ allowedTokens }) => allowedTokens !== undefined))
    throw invalidArgument(
      "Completions were sampled among some tokens of the vocabulary, which a Tinker service does not score. Set topK, topP " +
        "and minP to 0, 1 and 0.",
    );
}
