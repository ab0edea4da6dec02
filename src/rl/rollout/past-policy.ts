import type { LanguageModel } from "../../generation/index.js";
import { CompletionSampler } from "./completion-sampler.js";
import type { CompletionSettings } from "./rollout-settings.js";

/** An earlier version of a trained policy: the same model with other trained values. */
export class PastPolicy {
  readonly sampler: CompletionSampler;
  private readonly model: LanguageModel;
  private current: unknown;

  constructor(model: LanguageModel, settings: CompletionSettings) {
    this.model = model.withCausalLM(model.causalLM.withOwnValues());
    this.sampler = new CompletionSampler(this.model, settings);
  }

  /** Plays with these trained values from now on, in the order of the model's parameters. */
  async load(values: Float32Array): Promise<void> {
    if (this.current === values) return;
    const { causalLM } = this.model;
    await causalLM.runtime.write(causalLM.parameters.values, values);
    causalLM.markParametersChanged();
    this.current = values;
  }

  /** Makes the next results independent of those before, to the last bit. */
  clearCaches(): void {
    this.model.causalLM.clearCaches();
  }

  async release(): Promise<void> {
    await (await this.model.sampler()).release();
    this.model.causalLM.parameters.free();
  }
}
