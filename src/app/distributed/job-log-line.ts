import { z } from "zod";

export const JOB_LOG_FILE = "jobs.jsonl";

/** A line of jobs.jsonl, a job that a worker answered; docs/rollouts.md lists the fields. */
export const jobLogLine = z.object({
  /** Milliseconds since 1970 by the learner's clock, as all times: when the answer was received. */
  time: z.number(),
  worker: z.string(),
  /** A refused or failed job is repeated, and has another line; after an error the run ends. */
  outcome: z.enum(["used", "refused", "failed", "error"]),
  /** When the job was added to the queue. */
  queued: z.number(),
  /**
   * Time that the job took on the worker, which began it at `time` - 1000 `seconds`; absent for
   * refused and failed ones.
   */
  seconds: z.number().nonnegative().optional(),
  /**
   * Updates behind the weights of the job, and behind the newest weights when its answer was
   * received.
   */
  version: z.number(),
  step: z.number(),
  /** Jobs without an answer, including this one. */
  pending: z.number(),
  /** Size of the job and of the answer as they travel. */
  jobBytes: z.number(),
  answerBytes: z.number(),
  reason: z.string().optional(),
  /** Micro-batch of an update; absent for rollouts. */
  work: z.literal("gradients").optional(),
});

export type JobLogLine = Readonly<z.infer<typeof jobLogLine>>;
