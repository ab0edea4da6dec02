import { LlamaGymError } from "../../core/errors.js";
import { isAdapterFolder } from "../../models/files/index.js";
import { checkAdapterBase, loadTrainedValues, type CausalLM } from "../../models/index.js";
import { findRunResult } from "./run-config.js";

/**
 * Reads the trained values of another run, in the order of a model's parameters.
 * @throws INVALID_ARGUMENT for a path without a saved model, and for an adapter of another base
 * model, of other modules or of another rank.
 */
export async function readAdapterOpponent(model: CausalLM, path: string): Promise<Float32Array> {
  const folder = await findRunResult(path);
  const copy = model.withOwnValues();
  try {
    if (await isAdapterFolder(folder)) await checkAdapterBase(model, folder);
    // An opponent needs no value head, and may come from an algorithm without one.
    await loadTrainedValues(copy, folder, { valueHead: false });
    const { data } = await copy.runtime.read(copy.parameters.values);
    return (data as Float32Array).slice();
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `\`opponents\` has ${path}, which does not fit this run: ${error.message} Opponents are saved results of runs with the same base model and the same tuning, r and modules.`,
      { cause: error },
    );
  } finally {
    copy.parameters.free();
  }
}
