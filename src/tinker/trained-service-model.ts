import { LlamaGymError } from "../core/errors.js";
import type { ServiceSession } from "./client/service-session.js";
import type { TokenUsage } from "./client/token-usage.js";
import { RemoteModel, type AdamStep, type PassOptions, type ServiceAdapter } from "./client/remote-model.js";
import { toLinearLoss } from "./linear-loss.js";
import type { ServiceTraits } from "./probe-service.js";
import { RemoteGradient } from "./remote-gradient.js";
import type { ServicePasses } from "./remote-trainer.js";
import type { ServiceLoss } from "./service-loss.js";
import type { ServiceModel } from "./service-model.js";
import { readTargets, toData, type TargetSequence } from "./token-sequences.js";
import type { TrainingDatum } from "./wire/forward-backward.js";

/** Name of a linear loss in what a model was trained with: any other loss by its derivative. */
const LINEAR_LOSS = "linear";

/** What a trained model on a service needs. */
export interface TrainedServiceModelOptions {
  readonly session: ServiceSession;
  readonly form: ServiceAdapter;
  /** Counts what the service computes. */
  readonly usage: TokenUsage;
  /** Saved weights to continue with. */
  readonly saved: ServiceModel | undefined;
  /** Measures how the service computes. */
  readonly probe: () => Promise<ServiceTraits>;
}

/**
 * The model that a service trains, created there before the first pass: its passes, its gradient
 * and its optimizer.
 */
export class TrainedServiceModel implements ServicePasses {
  readonly gradient = new RemoteGradient();
  private saved: ServiceModel | undefined;
  private model: Promise<RemoteModel> | undefined;
  private modelCount = 0;
  private traits: Promise<ServiceTraits> | undefined;
  /** Losses of the service that it was trained with. */
  private readonly losses: Set<string>;
  /** Whether the optimizer at the service has the moments of one that was released. */
  private hasStaleOptimizer = false;

  constructor(private readonly options: TrainedServiceModelOptions) {
    this.saved = options.saved;
    this.losses = new Set(options.saved?.losses);
  }

  /** Path of the saved weights to sample from; undefined once the model was created. */
  get samplerPath(): string | undefined {
    return this.model === undefined ? this.saved?.samplerPath : undefined;
  }

  /** Names of the service's losses that it was trained with so far. */
  get usedLosses(): readonly string[] {
    return [...this.losses];
  }

  /** Takes a snapshot and returns the id of a sampling session on it. */
  async snapshot(samplingSessionSeqId: number): Promise<string> {
    return (await this.open()).snapshot(samplingSessionSeqId);
  }

  /** Takes an optimizer step with the gradient of the linear losses that were added. */
  async step(adam: AdamStep): Promise<Readonly<Record<string, number>>> {
    if (this.gradient.isEmpty) return {};
    const [model, { reduction, severalTargets }] = [await this.open(), await this.getTraits()];
    const { lossFn, data } = toLinearLoss(this.gradient.take(), reduction === "mean", severalTargets);
    if (data.length === 0) return model.optimStep(adam);
    this.losses.add(LINEAR_LOSS);
    this.options.usage.add({ trained: countTokens(data) });
    // Both are submitted before either has ended.
    const [, metrics] = await Promise.all([model.pass(data, { lossFn }), model.optimStep(adam)]);
    return metrics;
  }

  /** Drops the optimizer's moments before the next step. */
  resetOptimizer(): void {
    this.hasStaleOptimizer = true;
  }

  /** Scores under the trained policy, by a forward pass. */
  async score(sequences: readonly TargetSequence[], count: number): Promise<Float32Array> {
    const { severalTargets } = await this.getTraits();
    const data = toData(sequences, { weights: () => 1 }, severalTargets);
    this.options.usage.add({ scored: countTokens(data) });
    return this.pass(sequences, count, data, { lossFn: "cross_entropy", forwardOnly: true });
  }

  async train(sequences: readonly TargetSequence[], count: number, loss: ServiceLoss): Promise<Float32Array> {
    const { lossFn, config } = loss;
    const { severalTargets } = await this.getTraits();
    const inputs = Object.entries(loss.inputs).map(([name, values]) => [name, (i: number) => values[i]] as const);
    const data = toData(sequences, Object.fromEntries(inputs), severalTargets);
    this.losses.add(lossFn);
    this.options.usage.add({ trained: countTokens(data) });
    return this.pass(sequences, count, data, { lossFn, config });
  }

  private async pass(
    sequences: readonly TargetSequence[],
    count: number,
    data: readonly TrainingDatum[],
    options: PassOptions,
  ): Promise<Float32Array> {
    const { lossFnOutputs } = await (await this.open()).pass(data, options);
    const logProbs = readTargets(
      sequences,
      lossFnOutputs.map((output) => output.logprobs),
      count,
    );
    if (logProbs !== undefined) return logProbs;
    throw new LlamaGymError("SERVICE_FAILED", "The service returned other log-probabilities than those of the data.");
  }

  /** Saves adapter and optimizer on the service. */
  async save(): Promise<ServiceModel> {
    const { form, session, usage } = this.options;
    const model = await this.open();
    const name = createName();
    this.saved = {
      baseUrl: session.connection.baseUrl,
      form,
      statePath: await model.save(name),
      samplerPath: await model.saveForSampler(name),
      tokens: usage.counts,
      traits: await this.traits,
      losses: this.usedLosses,
    };
    return this.saved;
  }

  /** Continues with what was saved. */
  async load(saved: ServiceModel): Promise<void> {
    const previous = this.model;
    this.saved = saved;
    this.model = undefined;
    this.hasStaleOptimizer = false;
    this.gradient.clear();
    for (const loss of saved.losses ?? []) this.losses.add(loss);
    await (await previous)?.unload();
  }

  /** Returns how the service computes, measured once for a run. */
  async getTraits(): Promise<ServiceTraits> {
    this.traits ??= this.saved?.traits === undefined ? this.options.probe() : Promise.resolve(this.saved.traits);
    return this.traits;
  }

  private async open(): Promise<RemoteModel> {
    const { session, form } = this.options;
    const { saved } = this;
    this.model ??=
      saved === undefined
        ? RemoteModel.create(session, this.modelCount++, form)
        : RemoteModel.load(session, this.modelCount++, { path: saved.statePath, form });
    if (this.hasStaleOptimizer) {
      this.hasStaleOptimizer = false;
      this.model = this.withNewOptimizer(await this.model);
    }
    return this.model;
  }

  private async withNewOptimizer(model: RemoteModel): Promise<RemoteModel> {
    this.gradient.clear();
    const { session, form } = this.options;
    const path = await model.save(createName());
    const renewed = await RemoteModel.load(session, this.modelCount++, { path, form, optimizer: false });
    await model.unload();
    return renewed;
  }
}

function createName(): string {
  return `llamagym-${crypto.randomUUID().slice(0, 13)}`;
}

function countTokens(data: readonly { readonly tokens: readonly number[] }[]): number {
  return data.reduce((sum, { tokens }) => sum + tokens.length, 0);
}
