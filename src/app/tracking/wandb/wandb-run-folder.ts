import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { toReadError, getSystemErrorCode } from "../../../core/files/file-errors.js";
import type { WandbConfig } from "./wandb-config.js";

/** The folder of a run's W&B files: FOLDER/run-ID.wandb and FOLDER/files. */
export interface WandbRunFolder {
  readonly runId: string;
  readonly path: string;
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Names a new folder below `parent`/wandb in the pattern of W&B's client, which `wandb sync`
 * expects; draws a missing run id.
 */
export function nameRunFolder(
  parent: string,
  { mode, runId = drawRunId() }: Pick<WandbConfig, "mode" | "runId">,
  date: Date,
): WandbRunFolder {
  const pad = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}${pad(date.getMonth() + 1)}${pad(date.getDate())}`;
  const time = `${pad(date.getHours())}${pad(date.getMinutes())}${pad(date.getSeconds())}`;
  const prefix = mode === "offline" ? "offline-run" : "run";
  return { runId, path: join(parent, "wandb", `${prefix}-${day}_${time}-${runId}`) };
}

function drawRunId(): string {
  return Array.from(randomBytes(8), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/** Finds the newest run below `parent`/wandb. @throws FILE_READ_FAILED */
export async function findLatestRunFolder(parent: string): Promise<WandbRunFolder | undefined> {
  const folder = join(parent, "wandb");
  const names = await readdir(folder).catch((error: unknown) => {
    if (getSystemErrorCode(error) === "ENOENT") return [];
    throw toReadError(folder, error);
  });
  const runs = names
    .map((name) => /^(?:offline-)?run-(\d{8}_\d{6})-(.+)$/.exec(name))
    .filter((match) => match !== null)
    .sort(([, a], [, b]) => (a < b ? -1 : 1));
  const last = runs.at(-1);
  return last === undefined ? undefined : { runId: last[2], path: join(folder, last[0]) };
}

export function getRunFilePath({ runId, path }: WandbRunFolder): string {
  return join(path, `run-${runId}.wandb`);
}

export function getFilesPath({ path }: WandbRunFolder): string {
  return join(path, "files");
}
