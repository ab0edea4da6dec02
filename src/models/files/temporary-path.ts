import { createHash, fs, system } from "#platform";
import { getProcessIdentity } from "./process-identity.js";

const OWNER = /^(\d+)-([\da-f]{8})-([\da-f]{8})-/;
const SUFFIX = ".partial";

const hash = (text: string) => createHash("sha256").update(text).hex().slice(0, 8);

/** Returns a name of this process to begin names of its temporary files with: its id, its host and its start. */
export function getOwnerName(): string {
  const { pid, host, bootId, processStart } = getProcessIdentity();
  return `${pid}-${hash(host)}-${hash(bootId + processStart)}-`;
}

/** Whether the process that a name begins with ran on this host and has ended. */
export function hasOwnerEnded(name: string): boolean {
  const [, pidText, host, start] = OWNER.exec(name) ?? [];
  if (host !== hash(system.hostname)) return false;
  const pid = Number(pidText);
  return !system.isProcessRunning(pid) || start !== hash(system.bootId + system.getProcessStart(pid));
}

/** Returns the name under which this process writes a file or folder before it is complete, next to its final path. */
export function getTemporaryPath(path: string): string {
  const random = crypto.randomUUID().slice(0, 8);
  return fs.join(fs.dirname(path), `.${fs.basename(path)}.${getOwnerName()}${random}${SUFFIX}`);
}

/** Removes what killed processes of this host left under temporary names in a folder, only those of `path` if it is given. */
export async function removeAbandonedFiles(folder: string, path?: string): Promise<void> {
  const prefix = path === undefined ? "." : `.${fs.basename(path)}.`;
  const names = await fs.list(folder).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith(SUFFIX)) continue;
    const owner = name.slice(name.lastIndexOf(".", name.length - SUFFIX.length - 1) + 1);
    if (hasOwnerEnded(owner)) await fs.remove(fs.join(folder, name)).catch(() => undefined);
  }
}
