import { LlamaGymError } from "../../../core/errors.js";
import type { JsonObject } from "../../../core/json.js";
import type { WandbClient } from "./wandb-client.js";
import type { WandbConfig } from "./wandb-config.js";

const UPSERT_RUN = `
mutation UpsertRun($name: String, $project: String, $entity: String, $groupName: String, $displayName: String, $config: JSONString, $host: String, $sweep: String, $tags: [String!]) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, groupName: $groupName, displayName: $displayName, config: $config, host: $host, sweep: $sweep, tags: $tags}) {
    bucket { displayName historyLineCount summaryMetrics project { name entity { name } } }
  }
}`;

const RESUME_STATUS = `
query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name, missingOk: true) { historyLineCount }
  }
}`;

const CREATE_FILES = `
mutation CreateFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
    uploadHeaders
    files { name uploadUrl }
  }
}`;

/** The server's record of a run. */
export interface RemoteRun {
  readonly entity: string;
  readonly project: string;
  readonly runId: string;
  readonly displayName: string;
  readonly historyLines: number;
  /** The last step; -1 for none. */
  readonly lastStep: number;
}

interface UpsertResponse {
  readonly upsertBucket: {
    readonly bucket: {
      readonly displayName: string | null;
      readonly historyLineCount: number | null;
      readonly summaryMetrics: string | null;
      readonly project: { readonly name: string; readonly entity: { readonly name: string } };
    };
  };
}

/** Creates a run on the server, or returns the existing one. @throws TRACKING_FAILED */
export async function upsertRun(
  client: WandbClient,
  runId: string,
  settings: WandbConfig,
  host: string,
  config: JsonObject | undefined,
): Promise<RemoteRun> {
  const { upsertBucket } = await client.query<UpsertResponse>(UPSERT_RUN, {
    name: runId,
    project: settings.project,
    entity: settings.entity || null,
    groupName: settings.group || null,
    displayName: settings.name || null,
    config: config === undefined ? null : serializeConfig(config),
    host,
    sweep: settings.sweepId ?? null,
    tags: settings.tags.length === 0 ? null : settings.tags,
  });
  const { displayName, historyLineCount, summaryMetrics, project } = upsertBucket.bucket;
  return {
    runId,
    entity: project.entity.name,
    project: project.name,
    displayName: displayName ?? runId,
    historyLines: historyLineCount ?? 0,
    lastStep: parseLastStep(summaryMetrics),
  };
}

interface ResumeStatusResponse {
  /** Null for a project that does not exist. */
  readonly model: { readonly bucket: { readonly historyLineCount: number | null } | null } | null;
}

/**
 * Checks that the server has the run ("must"), or has no rows of it ("never"; `wandb agent`
 * reserves empty runs).
 * @throws TRACKING_FAILED
 */
export async function checkResumable(
  client: WandbClient,
  runId: string,
  { project, entity }: WandbConfig,
  resume: "must" | "never",
): Promise<void> {
  const { model } = await client.query<ResumeStatusResponse>(RESUME_STATUS, {
    name: runId,
    project,
    entity: entity || null,
  });
  const bucket = model?.bucket ?? undefined;
  if (resume === "must" && bucket === undefined)
    throw new LlamaGymError(
      "TRACKING_FAILED",
      `WANDB_RESUME is "must", but W&B has no run "${runId}" in the project "${project}". Correct WANDB_RUN_ID, or use "allow".`,
    );
  if (resume === "never" && (bucket?.historyLineCount ?? 0) > 0)
    throw new LlamaGymError(
      "TRACKING_FAILED",
      `WANDB_RESUME is "never", but W&B has a run "${runId}" in the project "${project}". Change WANDB_RUN_ID, or use "allow".`,
    );
}

/** Wraps each setting in an object, as the server stores it. */
function serializeConfig(config: JsonObject): string {
  return JSON.stringify(Object.fromEntries(Object.entries(config).map(([key, value]) => [key, { value }])));
}

function parseLastStep(summary: string | null): number {
  const match = /"_step":\s*(\d+)/.exec(summary ?? "");
  return match === null ? -1 : Number(match[1]);
}

interface CreateFilesResponse {
  readonly createRunFiles: {
    /** "Name: value" each. */
    readonly uploadHeaders: readonly string[];
    readonly files: readonly { readonly name: string; readonly uploadUrl: string }[];
  };
}

/** Requests an upload URL for a file of a run. @throws TRACKING_FAILED */
export async function createUpload(
  client: WandbClient,
  { entity, project, runId }: RemoteRun,
  file: string,
): Promise<{ readonly url: string; readonly headers: Readonly<Record<string, string>> }> {
  const { createRunFiles } = await client.query<CreateFilesResponse>(CREATE_FILES, {
    entity,
    project,
    run: runId,
    files: [file],
  });
  const headers = createRunFiles.uploadHeaders.map((header) => {
    const colon = header.indexOf(":");
    return [header.slice(0, colon), header.slice(colon + 1).trim()] as const;
  });
  return { url: createRunFiles.files[0].uploadUrl, headers: Object.fromEntries(headers) };
}
