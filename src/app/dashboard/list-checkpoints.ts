import type { Checkpoint } from "./api.js";
import type { RunsFolder } from "./run-files.js";

/** Lists what can be played of a run: its checkpoints in their order, then its adapter. */
export async function listCheckpoints(runs: RunsFolder, id: string): Promise<readonly Checkpoint[]> {
  const names = (await runs.list(id, "checkpoints")).filter((name) => /^\d{1,12}$/.test(name)).sort();
  const adapter = await runs.list(id, "adapter");
  return [
    ...names.map((name): Checkpoint => ({ name, updates: Number(name) })),
    ...(adapter.length > 0 ? [{ name: "adapter", updates: null }] : []),
  ];
}
