export const LOG_FILE = "log.jsonl";

/** What a line of log.jsonl reports. */
export type RunLogKind = "start" | "end" | "warning" | "control" | "resources";

/** A line of log.jsonl; docs/dashboard.md lists the fields. */
export interface RunLogLine {
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Updates made by then. */
  readonly step: number;
  readonly kind: RunLogKind;
  readonly message: string;
  /** Page of docs/ that explains a warning. */
  readonly page?: string;
  /** Id of a control request, and whether it was carried out. */
  readonly request?: string;
  readonly ok?: boolean;
  /** The process of a start. */
  readonly pid?: number;
  readonly host?: string;
  /** Commit of the code in the working folder of a start, where it is a Git repository. */
  readonly commit?: string;
  /** Of an end: "finished", "stopped" or "failed". */
  readonly outcome?: string;
  /** Resident memory of the process in bytes, and seconds spent in rollouts and updates. */
  readonly memoryBytes?: number;
  readonly seconds?: number;
}
