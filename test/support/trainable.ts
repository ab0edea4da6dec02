import { VALUE_HEAD_DEFAULTS } from "../../src/engine/nn/value-head.js";
import { AutoModelForCausalLM, getPeftModel, type LanguageModel } from "../../src/generation/index.js";
import type { PeftOptions } from "../../src/models/adapters/get-peft-model.js";
import { writeRandomModel, type RandomModelOptions } from "./random-model.js";

const ADAPTER: PeftOptions = {
  r: 16,
  loraAlpha: 32,
  targetModules: "all-linear",
  valueHead: { ...VALUE_HEAD_DEFAULTS, dropout: 0 },
};

/**
 * Random models with an adapter and a value head, to be closed together. Those of a folder share
 * weights and a worker.
 */
export class TrainableModels {
  private readonly cleanups: (() => Promise<void>)[] = [];
  private readonly folders = new Map<string, string>();
  private readonly bases = new Map<string, LanguageModel>();

  /** A model in its folder; the same options give the same model, in the same folder. */
  async open(options: RandomModelOptions = {}): Promise<LanguageModel & { readonly folder: string }> {
    const key = JSON.stringify(options);
    if (!this.folders.has(key)) {
      const { folder, remove } = await writeRandomModel(options);
      this.cleanups.push(remove);
      this.folders.set(key, folder);
    }
    const folder = this.folders.get(key)!;
    return Object.assign(await this.reopen(folder), { folder });
  }

  /** The model of a folder with a new adapter. Closing it closes all of the folder. */
  async reopen(folder: string, options: PeftOptions = {}): Promise<LanguageModel> {
    let base = this.bases.get(folder);
    if (base === undefined) {
      base = await AutoModelForCausalLM.fromPretrained(folder, { device: "cpu", threads: 1 });
      this.bases.set(folder, base);
      this.track(base);
    }
    return getPeftModel(base, { ...ADAPTER, ...options });
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
