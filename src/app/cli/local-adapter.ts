import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { downloadAdapter, isServiceModelFolder } from "../../tinker/index.js";
import type { Reporter } from "./reporter.js";

/** An adapter on this machine; `base` is its base model where a service named it. */
export interface LocalAdapter {
  readonly folder: string;
  readonly base?: string;
}

/**
 * Runs a function with the folder of an adapter. An adapter on a service is downloaded for that
 * time.
 * @throws as the function, and as `downloadAdapter`
 */
export async function withLocalAdapter<Result>(
  folder: string,
  { warn }: Pick<Reporter, "warn">,
  use: (adapter: LocalAdapter) => Promise<Result>,
): Promise<Result> {
  if (!(await isServiceModelFolder(folder))) return use({ folder });
  const copy = await mkdtemp(join(tmpdir(), "llamagym-adapter-"));
  try {
    const base = await downloadAdapter(folder, copy, { onWarning: warn });
    return await use({ folder: copy, base });
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}
