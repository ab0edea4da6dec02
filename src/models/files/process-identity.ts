import { system } from "#platform";

/** What tells a process from every other one, also after its id is used again. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  readonly bootId: string;
  /** "" where it is unknown. */
  readonly processStart: string;
}

let identity: ProcessIdentity | undefined;

export function getProcessIdentity(): ProcessIdentity {
  const { pid, hostname: host, bootId } = system;
  return (identity ??= { pid, host, bootId, processStart: system.getProcessStart(pid) });
}

/** Whether a process has certainly ended; false for one of another host, which cannot be seen from here. */
export function hasProcessEnded({ pid, host, bootId, processStart }: ProcessIdentity): boolean {
  if (host !== system.hostname) return false;
  if (bootId !== system.bootId || !system.isProcessRunning(pid)) return true;
  return processStart !== "" && processStart !== system.getProcessStart(pid);
}
