import { AutoModelForCausalLMWithValueHead, type LanguageModel } from "../../src/generation/index.js";
import { writeRandomModel, type RandomModelOptions } from "./random-model.js";

/** Random models with an adapter and a value head, to be closed together. */
export class TrainableModels {
  private readonly cleanups: (() => Promise<void>)[] = [];

  /** A model in its folder; the same options give the same model. */
  async open(options: RandomModelOptions = {}): Promise<LanguageModel & { readonly folder: string }> {
    const { folder, remove } = await writeRandomModel(options);
    this.cleanups.push(remove);
    const model = await this.reopen(folder);
    return Object.assign(model, { folder });
  }

  /** The model of a folder with a new adapter. */
  async reopen(folder: string): Promise<LanguageModel> {
    const model = await AutoModelForCausalLMWithValueHead.fromPretrained(folder, { device: "cpu", threads: 1 });
    this.cleanups.push(() => model.close());
    return model;
  }

  /** Closes a model with the others. */
  track(model: LanguageModel): void {
    this.cleanups.push(() => model.close());
  }

  async close(): Promise<void> {
    for (const close of this.cleanups.splice(0).reverse()) await close();
  }
}

/** A copy of all trained values. */
export async function readTrainedValues({ causalLM }: LanguageModel): Promise<Float32Array> {
  return ((await causalLM.runtime.read(causalLM.parameters.values)).data as Float32Array).slice();
}

/** Puts other values in place of all trained ones. */
export async function setTrainedValues({ causalLM }: LanguageModel, value: (i: number) => number): Promise<void> {
  const { runtime, parameters } = causalLM;
  await runtime.write(
    parameters.values,
    Float32Array.from({ length: parameters.count }, (_, i) => value(i)),
  );
  causalLM.markParametersChanged();
}
