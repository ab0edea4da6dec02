import { z } from "zod";
import { JOB_LOG_FILE, jobLogLine } from "../distributed/job-log-line.js";
import type { Job, JobList } from "./api.js";
import { readLastLines, type RunsFolder } from "./run-files.js";

/** Jobs of an answer: more bars than the page has room for. */
const MAX_JOBS = 2_000;
/** Bytes read from the end of the file: a line has some 250. */
const MAX_BYTES = 2 ** 20;
/** Characters of a name or reason that are shown. */
const MAX_TEXT_LENGTH = 200;

const text = z.string().transform((value) => value.slice(0, MAX_TEXT_LENGTH));
const jobSchema = jobLogLine
  .omit({ jobBytes: true, answerBytes: true })
  .extend({ worker: text, reason: text.optional() });

/**
 * Reads the newest answers of a run's workers; none for a run without workers. @throws
 * FILE_NOT_FOUND for an unknown run.
 */
export async function readJobs(runs: RunsFolder, id: string): Promise<JobList> {
  await runs.folder(id);
  const end = await readLastLines(runs, id, JOB_LOG_FILE, MAX_BYTES);
  const lines = (end?.lines ?? []).slice(-MAX_JOBS);
  const jobs = lines.flatMap((line) => parseJob(line) ?? []);
  return { jobs: jobs.sort((a, b) => a.time - b.time), numUnreadable: lines.length - jobs.length };
}

function parseJob(line: string): Job | undefined {
  try {
    return jobSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
