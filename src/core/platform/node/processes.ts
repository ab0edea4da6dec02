import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Returns Linux's ids of this boot and of the container's processes; "" on other systems, whose
 * start times are dates.
 */
export function readPidNamespace(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return "";
  }
}

export function isProcessRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Returns clock ticks since the boot on Linux, a date on macOS; "" on Windows, and for a process
 * that has ended.
 */
export function getProcessStart(pid: number): string {
  try {
    if (process.platform === "linux") return readStartTicks(pid);
    if (process.platform === "win32") return "";
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C", TZ: "UTC" },
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}

function readStartTicks(pid: number): string {
  const status = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name, in parentheses, may contain anything.
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  const [state] = fields;
  // A killed process stays in the table until its parent asks for its status.
  return state === "Z" || state === "X" ? "" : fields[19];
}
