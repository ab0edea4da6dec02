import { z } from "zod";

export const LOG_FILE = "log.jsonl";

/** A line of log.jsonl; docs/rollouts.md lists the fields. */
export const runLogLine = z.object({
  /** Milliseconds since 1970. */
  time: z.number(),
  /** Updates made by then. */
  step: z.number(),
  kind: z.enum(["start", "end", "warning", "control", "resources"]),
  message: z.string(),
  /** Page of docs/ that explains a warning. */
  page: z.string().max(100).optional(),
  /** Id of a control request, and whether it was carried out. */
  request: z.string().max(100).optional(),
  ok: z.boolean().optional(),
  /** The process of a start. */
  pid: z.number().optional(),
  host: z.string().optional(),
  /** Commit of the code in the working folder of a start, where it is a Git repository. */
  commit: z.string().max(100).optional(),
  /** How it ended: "finished", "stopped" or "failed". */
  outcome: z.string().max(20).optional(),
  /** Resident memory of the process in bytes, and seconds spent in rollouts and updates. */
  memoryBytes: z.number().optional(),
  seconds: z.number().optional(),
});

export type RunLogLine = Readonly<z.infer<typeof runLogLine>>;
