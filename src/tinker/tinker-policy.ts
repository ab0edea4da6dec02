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
import { RemoteModel, type AdamStep, type ServiceAdapter } from "./client/remote-model.js";
import type { LocalCritic } from "./local-critic.js";
import { RemoteOptimizer } from "./remote-optimizer.js";
import { RemoteSampler } from "./remote-sampler.js";
import { RemoteTrainer, type LinearGradients } from "./remote-trainer.js";
import type { ServiceTraits } from "./probe-service.js";
import { toLinearLoss, type WeightedSequences } from "./linear-loss.js";
import { readServiceModel, writeServiceModel, type ServiceModel } from "./service-model.js";
import { toData, unpackSequences, type TargetSequence } from "./token-sequences.js";

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
 * sample or pass. The service trains linear losses, into which RemoteTrainer turns every loss over
 * log-probabilities.
 */
export class TinkerPolicy implements PolicyBackend, LinearGradients {
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
  private saved: ServiceModel | undefined;
  private model: Promise<RemoteModel> | undefined;
  private modelCount = 0;
  private samplerCount = 0;
  private snapshot: { readonly version: number; readonly client: Promise<SamplingClient> } | undefined;
  private reference: Promise<SamplingClient> | undefined;
  private readonly samplers = new Map<boolean, Promise<TokenSampler>>();
  private traits: Promise<ServiceTraits> | undefined;
  private openedRuntime: Runtime | undefined;
  private gradient: WeightedSequences[] = [];
  /** Whether the optimizer at the service has the moments of one that was released. */
  private hasStaleOptimizer = false;

  constructor(private readonly options: TinkerPolicyOptions) {
    const { vocabSize, maxPositions, saved, maxServiceTokens } = options;
    // What attention costs at the service is not known here, so that micro-batches are not split
    // for it.
    this.config = { vocabSize, maxPositions, hiddenSize: Infinity, heads: 1 };
    this.usage = new TokenUsage(maxServiceTokens);
    this.saved = saved;
  }

  get name(): string {
    return this.options.form.baseModel;
  }

  get critic(): LocalCritic | undefined {
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
      const sequences = unpackSequences(batch);
      const isReference = options?.adapter === false;
      const count = batch.selected.length;
      const [logProbs, values] = await Promise.all([
        isReference
          ? this.scoreReference(sequences, count)
          : options?.valuesOnly === true
            ? new Float32Array(count).fill(NaN)
            : this.score(sequences, count),
        isReference ? undefined : this.critic?.score(batch),
      ]);
      return { logProbs, maxLogProbs: undefined, entropy: undefined, values, outputs: {} };
    };
    return { run, release: async () => {} };
  }

  async createTrainer(lossFn: (policy: PolicyNodes) => LossResult, options?: GraphOptions): Promise<PolicyTrainer> {
    const trainer = await RemoteTrainer.create(this, this.runtime, lossFn, options);
    return {
      run: async (batch, inputs, runOptions) => {
        checkBatch(batch);
        return trainer.run(batch, inputs, runOptions);
      },
      release: async () => trainer.release(),
    };
  }

  createOptimizer(options: PolicyOptimizerOptions): RemoteOptimizer {
    return new RemoteOptimizer(options, this, this.critic?.createOptimizer(options));
  }

  /** The critic's parameters are always trained; those at the service all or none. */
  async zeroGradients(isUntrained: (parameter: string) => boolean): Promise<void> {
    if (isUntrained(ADAPTER_PARAMETER)) this.gradient = [];
  }

  /** Takes an optimizer step with the gradient of the linear losses that were added. */
  async step(adam: AdamStep): Promise<Readonly<Record<string, number>>> {
    if (this.gradient.length === 0) return {};
    const [model, { reduction }] = [await this.trainedModel(), await this.getTraits()];
    const { lossFn, data } = toLinearLoss(this.gradient, reduction === "mean");
    this.gradient = [];
    this.usage.add({ trained: countTokens(data) });
    // Both are submitted before either has ended.
    const [, metrics] = await Promise.all([model.pass(data, { lossFn }), model.optimStep(adam)]);
    return metrics;
  }

  resetOptimizer(): void {
    this.hasStaleOptimizer = true;
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

  /** Scores under the trained policy, by a forward pass. */
  async score(sequences: readonly TargetSequence[], count: number): Promise<Float32Array> {
    const model = await this.trainedModel();
    const data = toData(sequences, { weights: () => 1 });
    this.usage.add({ scored: countTokens(data) });
    const { lossFnOutputs: outputs } = await model.pass(data, { lossFn: "cross_entropy", forwardOnly: true });
    const logProbs = new Float32Array(count);
    sequences.forEach(({ tokens, selected }, i) => {
      const values = outputs.at(i)?.logprobs?.data;
      if (values?.length !== tokens.length - 1)
        throw new LlamaGymError(
          "SERVICE_FAILED",
          "The service returned other log-probabilities than those of the data.",
        );
      for (const [position, index] of selected) logProbs[index] = values[position - 1];
    });
    return logProbs;
  }

  addGradient(weighted: WeightedSequences, { accumulate }: { readonly accumulate: boolean }): void {
    this.gradient = accumulate ? [...this.gradient, weighted] : [weighted];
  }

  /** Saves adapter and optimizer on the service, and their paths in a folder. */
  async save(folder: string): Promise<void> {
    const model = await this.trainedModel();
    const name = createName();
    const statePath = await model.save(name);
    const samplerPath = await model.saveForSampler(name);
    const { form, session } = this.options;
    this.saved = {
      baseUrl: session.connection.baseUrl,
      form,
      statePath,
      samplerPath,
      tokens: this.usage.counts,
      traits: await this.traits,
    };
    await fs.makeFolder(folder);
    await this.critic?.save(fs.join(folder, CRITIC_FOLDER));
    await writeServiceModel(folder, this.saved);
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
    const previous = this.model;
    this.saved = saved;
    this.model = undefined;
    this.hasStaleOptimizer = false;
    await (await previous)?.unload();
    this.snapshot = undefined;
    this.gradient = [];
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

  /** Returns how the service computes, measured once for a run. */
  private async getTraits(): Promise<ServiceTraits> {
    this.traits ??= this.saved?.traits === undefined ? this.options.probe() : Promise.resolve(this.saved.traits);
    return this.traits;
  }

  private async trainedModel(): Promise<RemoteModel> {
    const { session, form } = this.options;
    const { saved } = this;
    this.model ??=
      saved === undefined
        ? RemoteModel.create(session, this.modelCount++, form)
        : RemoteModel.load(session, this.modelCount++, { path: saved.statePath, baseModel: form.baseModel });
    if (this.hasStaleOptimizer) {
      this.hasStaleOptimizer = false;
      this.model = this.withNewOptimizer(await this.model);
    }
    return this.model;
  }

  private async withNewOptimizer(model: RemoteModel): Promise<RemoteModel> {
    const { session, form } = this.options;
    const path = await model.save(createName());
    const { baseModel } = form;
    const renewed = await RemoteModel.load(session, this.modelCount++, { path, baseModel, optimizer: false });
    await model.unload();
    return renewed;
  }

  /** Returns the client of the policy's present weights; saved weights need no trained model. */
  private async policyClient(): Promise<SamplingClient> {
    const { version, options } = this;
    if (this.snapshot?.version !== version) this.snapshot = { version, client: this.openPolicyClient(options.session) };
    return this.snapshot.client;
  }

  private async openPolicyClient(session: ServiceSession): Promise<SamplingClient> {
    this.usage.check();
    if (this.model === undefined && this.saved !== undefined)
      return SamplingClient.open(session, this.samplerCount++, { modelPath: this.saved.samplerPath }, this.usage);
    const model = await this.trainedModel();
    return new SamplingClient(session, await model.snapshot(this.samplerCount++), this.usage);
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
      sequences.map(async ({ tokens, selected }) => {
        const first = Math.min(...selected.keys());
        const values = await client.scoreLast(tokens, tokens.length - first);
        for (const [position, index] of selected) logProbs[index] = values[position - first];
      }),
    );
    return logProbs;
  }
}

function createName(): string {
  return `llamagym-${crypto.randomUUID().slice(0, 13)}`;
}

function countTokens(data: readonly { readonly tokens: readonly number[] }[]): number {
  return data.reduce((sum, { tokens }) => sum + tokens.length, 0);
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
