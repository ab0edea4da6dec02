import { getOrCreatePromise } from "../core/promise-cache.js";
import { isValueHeadParameter } from "../engine/nn/index.js";
import { Optimizer } from "../engine/optim/index.js";
import { loadTrainedValues, saveModel, type CausalLM, type SaveOptions } from "../models/index.js";
import {
  FrozenStates,
  ScoringGraph,
  TrainingGraph,
  type GraphOptions,
  type LossResult,
  type PolicyNodes,
} from "../models/graphs/index.js";
import type { PolicyBackend, PolicyOptimizerOptions } from "./policy-backend.js";
import { Sampler, type SamplerOptions } from "./sampling/sampler.js";

/** A policy that the engine in this process computes. */
export class EnginePolicy implements PolicyBackend {
  readonly hasDistributions = true;
  readonly frozenStates: FrozenStates | undefined;
  private readonly samplers = new Map<boolean, Promise<Sampler>>();

  constructor(
    readonly causalLM: CausalLM,
    private readonly options: Pick<SamplerOptions, "maxNumSequences"> = {},
  ) {
    this.frozenStates = FrozenStates.create(causalLM);
  }

  get name(): string {
    return this.causalLM.source.path;
  }

  get runtime() {
    return this.causalLM.runtime;
  }

  get config() {
    return this.causalLM.config;
  }

  get generationConfig() {
    return this.causalLM.source.generationConfig;
  }

  get eosTokenIds(): readonly number[] {
    return this.causalLM.eosTokenIds;
  }

  get isTrainable(): boolean {
    return this.causalLM.isTrainable;
  }

  get valueHead() {
    return this.causalLM.valueHead;
  }

  get hasAdapter(): boolean {
    return this.causalLM.adapter !== undefined;
  }

  get microBatchTokens(): number {
    return this.causalLM.microBatchTokens;
  }

  get parametersVersion(): number {
    return this.causalLM.parametersVersion;
  }

  get cacheVersion(): number {
    return this.causalLM.cacheVersion;
  }

  markParametersChanged(): void {
    this.causalLM.markParametersChanged();
  }

  clearCaches(): void {
    this.causalLM.clearCaches();
  }

  async sampler({ adapter = true }: { readonly adapter?: boolean } = {}): Promise<Sampler> {
    const usesAdapter = adapter || !this.hasAdapter;
    return getOrCreatePromise(this.samplers, usesAdapter, () => {
      const options = { ...this.options, adapter: usesAdapter, frozenStates: this.frozenStates };
      const other = this.samplers.get(!usesAdapter);
      return other?.then((found) => found.withAdapter(options)) ?? Sampler.create(this.causalLM, options);
    });
  }

  async createScorer(options?: GraphOptions): Promise<ScoringGraph> {
    return ScoringGraph.create(this.causalLM, options);
  }

  async createTrainer(lossFn: (policy: PolicyNodes) => LossResult, options?: GraphOptions): Promise<TrainingGraph> {
    return TrainingGraph.create(this.causalLM, lossFn, options);
  }

  createOptimizer({ valueHeadFactor = 1, ...options }: PolicyOptimizerOptions): Optimizer {
    const { parameters } = this.causalLM;
    const groups = parameters.groupBy(options.weightDecay ?? 0, (name) =>
      isValueHeadParameter(name) ? valueHeadFactor : 1,
    );
    return new Optimizer(parameters, { ...options, groups });
  }

  async zeroGradients(isUntrained: (parameter: string) => boolean): Promise<void> {
    await this.causalLM.parameters.zeroGradients(isUntrained);
  }

  async save(folder: string, options: SaveOptions): Promise<void> {
    await saveModel(this.causalLM, folder, options);
  }

  async loadTrainedValues(folder: string): Promise<void> {
    await loadTrainedValues(this.causalLM, folder);
  }

  async close(): Promise<void> {
    await this.causalLM.close();
  }
}
