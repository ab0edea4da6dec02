import { createHash, fs, system } from "#platform";
import { getProcessIdentity } from "./process-identity.js";

const OWNER = /^(\d+)-([\da-f]{8})-([\da-f]{8})-/;
const SUFFIX = ".partial";
const DAY_MS = 24 * 60 * 60 * 1000;

const hash = (text: string) => createHash("sha256").update(text).hex().slice(0, 8);

const hashPlace = (host: string, pidNamespace: string) => hash(`${host} ${pidNamespace}`);

/**
 * Returns a name of this process to begin names of its temporary files with: its id, where its id
 * is valid, and its start.
 */
export function getOwnerName(): string {
  const { pid, host, pidNamespace, processStart } = getProcessIdentity();
  return `${pid}-${hashPlace(host, pidNamespace)}-${hash(processStart)}-`;
}

/**
 * Whether the process that a name begins with has left the file or folder behind: it has ended, or
 * it cannot be seen from here (as in `hasProcessEnded`) and the last change is some days ago.
 */
export async function isLeftover(path: string, owner: string, maxAgeDays = 1): Promise<boolean> {
  const [, pidText, place, start] = OWNER.exec(owner) ?? [];
  if (pidText === undefined) return false;
  const pid = Number(pidText);
  if (place === hashPlace(system.hostname, system.pidNamespace))
    return !system.isProcessRunning(pid) || start !== hash(system.getProcessStart(pid));
  const status = await fs.stat(path).catch(() => undefined);
  return status !== undefined && Date.now() - status.modifiedMs > maxAgeDays * DAY_MS;
}

/**
 * Returns the name under which this process writes a file or folder before it is complete, next to
 * its final path.
 */
export function getTemporaryPath(path: string): string {
  const random = crypto.randomUUID().slice(0, 8);
  return fs.join(fs.dirname(path), `.${fs.basename(path)}.${getOwnerName()}${random}${SUFFIX}`);
}

/**
 * Removes what killed processes left under temporary names in a folder, only those of `path` if it
 * is given.
 */
export async function removeAbandonedFiles(folder: string, path?: string): Promise<void> {
  const prefix = path === undefined ? "." : `.${fs.basename(path)}.`;
  const names = await fs.list(folder).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith(SUFFIX)) continue;
    const owner = name.slice(name.lastIndexOf(".", name.length - SUFFIX.length - 1) + 1);
    const abandoned = fs.join(folder, name);
    if (await isLeftover(abandoned, owner)) await fs.remove(abandoned).catch(() => undefined);
  }
}
