import { LlamaGymError } from "../../core/errors.js";
import type { CausalLM } from "../../models/index.js";
import { sha256 } from "./encoding.js";

/**
 * Versions of the weights that a worker keeps: the current and the next one, and past opponents.
 */
const KEPT_VERSIONS = 4;

/** The weights of a job could not be loaded, which another worker may be able to do. */
export class WeightsError extends LlamaGymError {}

/** Loads published weights into a model. */
export class WeightsLoader {
  private readonly kept = new Map<string, Float32Array>();
  private current: string | undefined;

  constructor(
    private readonly model: CausalLM,
    private readonly fetchWeights: (sha256: string) => Promise<Uint8Array | undefined>,
  ) {}

  /**
   * @throws WeightsError for weights that are not kept any more, and for bytes with another hash.
   */
  async load(hash: string): Promise<void> {
    if (this.current === hash) return;
    const values = await this.read(hash);
    this.current = undefined;
    await this.model.runtime.write(this.model.parameters.values, values);
    this.model.markParametersChanged();
    this.current = hash;
  }

  /** Returns weights without loading them. Throws as `load`. */
  async read(hash: string): Promise<Float32Array> {
    const values = this.kept.get(hash) ?? (await this.fetch(hash));
    this.kept.delete(hash);
    this.kept.set(hash, values);
    for (const old of [...this.kept.keys()].slice(0, -KEPT_VERSIONS)) this.kept.delete(old);
    return values;
  }

  private async fetch(hash: string): Promise<Float32Array> {
    const bytes = await this.fetchWeights(hash);
    if (bytes === undefined) throw new WeightsError("FILE_NOT_FOUND", "The weights of the job are not kept any more.");
    const isValid = bytes.length === 4 * this.model.parameters.count && sha256(bytes) === hash;
    if (!isValid) throw new WeightsError("FILE_CORRUPT", "The weights of the job have another hash.");
    return new Float32Array(bytes.slice().buffer);
  }
}
