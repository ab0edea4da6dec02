import { system } from "#platform";

/** What tells a process from every other one, also after its id is used again. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  readonly pidNamespace: string;
  /** "" where it is unknown. */
  readonly processStart: string;
}

let identity: ProcessIdentity | undefined;

export function getProcessIdentity(): ProcessIdentity {
  const { pid, hostname: host, pidNamespace } = system;
  return (identity ??= { pid, host, pidNamespace, processStart: system.getProcessStart(pid) });
}

/**
 * Whether a process has ended; undefined for one that cannot be seen from here: of another host,
 * container or boot. Containers may have one host name.
 */
export function hasProcessEnded({ pid, host, pidNamespace, processStart }: ProcessIdentity): boolean | undefined {
  if (host !== system.hostname || pidNamespace !== system.pidNamespace) return undefined;
  if (!system.isProcessRunning(pid)) return true;
  return processStart !== "" && processStart !== system.getProcessStart(pid);
}
