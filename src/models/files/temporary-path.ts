import { createHash, fs, system } from "#platform";
import { getProcessIdentity } from "./process-identity.js";

/** The owner's process id, its host, and its start, then a random part. */
const TEMPORARY_NAME = /\.(\d+)-([\da-f]{8})-([\da-f]{8})-[\da-f]{8}\.partial$/;

const hash = (text: string) => createHash("sha256").update(text).hex().slice(0, 8);

/** Returns the name under which this process writes a file or folder before it is complete, next to its final path. */
export function getTemporaryPath(path: string): string {
  const { pid, host, bootId, processStart } = getProcessIdentity();
  const owner = `${pid}-${hash(host)}-${hash(bootId + processStart)}`;
  return fs.join(fs.dirname(path), `.${fs.basename(path)}.${owner}-${crypto.randomUUID().slice(0, 8)}.partial`);
}

/** Removes what killed processes of this host left under temporary names in a folder, only those of `path` if it is given. */
export async function removeAbandonedFiles(folder: string, path?: string): Promise<void> {
  const prefix = path === undefined ? "." : `.${fs.basename(path)}.`;
  const names = await fs.list(folder).catch(() => []);
  for (const name of names)
    if (name.startsWith(prefix) && isAbandoned(name)) await fs.remove(fs.join(folder, name)).catch(() => undefined);
}

function isAbandoned(name: string): boolean {
  const [, pidText, host, start] = TEMPORARY_NAME.exec(name) ?? [];
  if (host !== hash(system.hostname)) return false;
  const pid = Number(pidText);
  return !system.isProcessRunning(pid) || start !== hash(system.bootId + system.getProcessStart(pid));
}
