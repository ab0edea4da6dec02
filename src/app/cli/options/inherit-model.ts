import { findRunOfAdapter } from "../../runs/run-folder.js";

/**
 * Returns the model of the run that an adapter comes from; nothing without an adapter, or if no run
 * is found.
 */
export async function inheritModel({ adapter }: { readonly adapter?: string }): Promise<{ readonly model?: string }> {
  const model = adapter === undefined ? undefined : (await findRunOfAdapter(adapter))?.model;
  return model === undefined ? {} : { model };
}
