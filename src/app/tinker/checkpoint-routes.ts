import type { Context } from "hono";
import { fs } from "#platform";
import { requests } from "../../tinker/wire/index.js";
import { RequestError } from "../server/request-error.js";
import {
  CHECKPOINT_KINDS,
  formatPath,
  parsePath,
  type CheckpointKind,
  type CheckpointPath,
  type RunRecord,
  type StoredCheckpoint,
} from "./checkpoint-store.js";
import { readRequest, type AddRoute } from "./read-request.js";
import type { TinkerService } from "./tinker-service.js";

const CHECKPOINT = "training_runs/:run/checkpoints/:kind/:name";

/** Files of an adapter that clients may download. */
const DOWNLOADS = ["adapter_config.json", "adapter_model.safetensors"];
/** The address of a file stays valid this long, since files are read with the server's key. */
const URL_MS = 86_400_000;

/** Adds the routes that list, read and delete training runs and checkpoints. */
export function mountCheckpointRoutes(add: AddRoute, service: TinkerService): void {
  const { store } = service;
  add("GET", "training_runs", async (context) => {
    const [limit, offset] = readPage(context);
    const runs = await store.listRuns();
    const page = await Promise.all(runs.slice(offset, offset + limit).map((run) => describeRun(run, service)));
    return { training_runs: page, cursor: { offset, limit, total_count: runs.length } };
  });
  add("GET", "training_runs/:run", async (context) => describeRun(await findRun(context, service), service));
  add("GET", "training_runs/:run/checkpoints", async (context) => {
    const { runId } = await findRun(context, service);
    return { checkpoints: (await store.list(runId)).map(describeCheckpoint) };
  });
  add("GET", "checkpoints", async (context) => {
    const [limit, offset] = readPage(context);
    const all = (await store.list()).reverse();
    const checkpoints = all.slice(offset, offset + limit).map(describeCheckpoint);
    return { checkpoints, cursor: { offset, limit, total_count: all.length } };
  });
  add("DELETE", CHECKPOINT, async (context) => {
    const path = readPath(context);
    await store.delete(path);
    await service.sampling.forgetCheckpoint(formatPath(path));
    return {};
  });
  add("PUT", `${CHECKPOINT}/ttl`, async (context) => {
    const { ttl_seconds: ttl } = await readRequest(context, requests.ttlRequest);
    await store.setTtl(readPath(context), ttl ?? undefined);
    return {};
  });
  for (const method of ["POST", "DELETE"] as const)
    add(method, `${CHECKPOINT}/publish`, () => {
      throw new RequestError(501, "Checkpoints of this server are on its disk and are not published.");
    });
  add("GET", `${CHECKPOINT}/external_weights_urls`, async (context) => {
    const path = readPath(context);
    await store.get(path);
    const folder = context.req.url.replace(/external_weights_urls(\?.*)?$/, "files");
    return {
      urls: Object.fromEntries(DOWNLOADS.map((name) => [name, `${folder}/${name}`])),
      expires: new Date(Date.now() + URL_MS).toISOString(),
    };
  });
  add("GET", `${CHECKPOINT}/files/:file`, async (context) => {
    const { folder } = await store.get(readPath(context));
    const file = context.req.param("file")!;
    if (!DOWNLOADS.includes(file)) throw new RequestError(404, `Files: ${DOWNLOADS.join(", ")}.`);
    const type = file.endsWith(".json") ? "application/json" : "application/octet-stream";
    return context.body(await fs.readBytes(fs.join(folder, file)), 200, { "content-type": type });
  });
  add("POST", "weights_info", async (context) => {
    const { tinker_path: path } = await readRequest(context, requests.weightsInfoRequest);
    const { baseModel, form } = await store.get(parsePath(path));
    const { rank, ...flags } = form;
    return { base_model: baseModel, is_lora: true, lora_rank: rank, ...flags, optimizer_config: { type: "adamw" } };
  });
  add("POST", "copy_weights", async (context) => {
    await readRequest(context, requests.copyWeightsRequest);
    throw new RequestError(501, "Checkpoints are not copied here. Load the checkpoint into a new model and save it.");
  });
}

function readPath(context: Context): CheckpointPath {
  const { run, kind, name } = context.req.param() as Readonly<Record<string, string>>;
  if (Object.hasOwn(CHECKPOINT_KINDS, kind)) return { runId: run, kind: kind as CheckpointKind, name };
  throw new RequestError(404, `There is no checkpoint ${kind}/${name}.`);
}

function readPage(context: Context): readonly [limit: number, offset: number] {
  const number = (name: string, fallback: number, max: number) => {
    const value = Number(context.req.query(name) ?? fallback);
    if (Number.isInteger(value) && value >= 0) return Math.min(value, max);
    throw new RequestError(400, `\`${name}\` must be an integer >= 0.`);
  };
  return [number("limit", 20, 1000), number("offset", 0, Number.MAX_SAFE_INTEGER)];
}

async function findRun(context: Context, { store }: TinkerService): Promise<RunRecord> {
  const id = context.req.param("run")!;
  const run = await store.findRun(id);
  if (run === undefined) throw new RequestError(404, `There is no training run ${id.slice(0, 100)}.`);
  return run;
}

async function describeRun(run: RunRecord, { store, sessions }: TinkerService): Promise<object> {
  const checkpoints = await store.list(run.runId);
  const lastOf = (kind: CheckpointKind) => {
    const last = checkpoints.findLast((checkpoint) => checkpoint.kind === kind);
    return last && describeCheckpoint(last);
  };
  const live = sessions.models.find(({ id }) => id === run.runId);
  return {
    training_run_id: run.runId,
    base_model: run.baseModel,
    model_owner: "local",
    is_lora: true,
    corrupted: false,
    lora_rank: run.form.rank,
    last_request_time: live?.lastRequest.toISOString() ?? checkpoints.at(-1)?.time ?? run.created,
    last_checkpoint: lastOf("weights"),
    last_sampler_checkpoint: lastOf("sampler_weights"),
    user_metadata: textMetadata(run.userMetadata),
  };
}

function describeCheckpoint(checkpoint: StoredCheckpoint): object {
  const { kind, name, time, bytes, expires, userMetadata } = checkpoint;
  return {
    checkpoint_id: `${kind}/${name}`,
    checkpoint_type: CHECKPOINT_KINDS[kind],
    time,
    tinker_path: formatPath(checkpoint),
    size_bytes: bytes,
    public: false,
    user_metadata: textMetadata(userMetadata),
    expires_at: expires ?? null,
  };
}

/** The SDK reads metadata as texts. */
function textMetadata(metadata: Readonly<Record<string, unknown>> | null | undefined): object | null {
  if (metadata == null) return null;
  return Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}
